import { finishReasons } from "@seatrial/domain"

/** The public finish reason for an engine's; null if it is not a valid one. */
export const finishReasonOf = (reason: string): string | null => (reason === "repetition" ? "stop" : finishReasons.has(reason) ? reason : null)
