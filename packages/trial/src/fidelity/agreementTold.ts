import type { MergedAgreement } from "./rules.ts"

/** What `seatrial merge-weights` says of what it wrote, in a line. Rounded down: nothing is said to agree better than it does. */
export const agreementTold = ({ othersEqual, withinUlpMin }: MergedAgreement): string =>
  `${(Math.floor(withinUlpMin * 1e5) / 1e3).toFixed(3)}% within one unit in the last place, all other tensors ${othersEqual ? "equal" : "DIFFERENT"}`

const line = /^(\d+\.\d{3})% within one unit in the last place, all other tensors (equal|DIFFERENT)$/mu

/** The same, read from a log; null where it does not stand there. */
export const readAgreement = (log: string): MergedAgreement | null => {
  const [, percent, others] = line.exec(log) ?? []
  return percent === undefined ? null : { withinUlpMin: Number(percent) / 100, othersEqual: others === "equal" }
}
