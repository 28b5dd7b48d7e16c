const endings = new Set(["stop", "length", "tool_calls", "content_filter"])

/** The public finish reason for an engine's; null if it is not a valid one. */
export const finishReasonOf = (reason: string): string | null => (reason === "repetition" ? "stop" : endings.has(reason) ? reason : null)
