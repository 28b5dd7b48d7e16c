import type { Check, CheckOutcome } from "@seatrial/domain"
import { maxDetailLength, rowDetail } from "./finding.ts"
import { kvPressure } from "./kvPressure.ts"
import { referenceAgrees } from "./referenceAgrees.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"
import { suite } from "./suiteVersion.ts"

export const row = (name: string, passed: boolean, detail: string): Check => ({ name, passed, detail: rowDetail(detail) })

/** A part of the last row: how many checks there are, and their names. Empty if there are none. */
const listOf = (what: string, names: ReadonlyArray<string>): string => (names.length === 0 ? "" : `, ${names.length} ${what} (${names.join(", ")})`)

/** A list of names in brackets. `room`: maximum number of characters; names that do not fit are replaced by "...". */
const inBrackets = (names: ReadonlyArray<string>, room: number): string => {
  for (let count = names.length; count > 0; count--) {
    const text = ` (${[...names.slice(0, count), ...(count < names.length ? ["..."] : [])].join(", ")})`
    if (text.length <= room) return text
  }
  return ""
}

interface Judged {
  readonly rows: ReadonlyArray<Check>
  readonly outcomes: ReadonlyArray<CheckOutcome>
  readonly withdrawn: ReadonlyArray<string>
}

/** The last row of a report. It names the checks that have no row. Programs never read its text. */
export const summaryRow = ({ outcomes, rows, withdrawn }: Judged, { noReference }: Pick<SuiteSubject, "noReference">, seconds: number): Check => {
  const namesOf = (outcome: CheckOutcome["outcome"]) => outcomes.filter((each) => each.outcome === outcome).map(({ name }) => name)
  const skipped = namesOf("not_applicable")
  const shown = new Set(rows.map(({ name }) => name))
  const unconfirmed = withdrawn.filter((name) => !shown.has(name))
  const notReached = namesOf("not_reached").filter((name) => !unconfirmed.includes(name))
  const ending = `, ${seconds} s`
  const lists = `${listOf("not confirmed, so not served", unconfirmed)}${listOf("not reached", notReached)}`
  const cause = noReference == null ? "" : `: ${noReference}`
  const compared = skipped.includes(referenceAgrees.name) ? `, no_reference${cause}` : ""
  const unpressed = outcomes.find(({ name, outcome }) => name === kvPressure().name && outcome === "not_applicable")
  const pressed = unpressed === undefined ? "" : `, no_preemption: ${unpressed.detail ?? ""}`
  const words = `${suite.name} ${suite.version}: ${rows.length} run${compared}${pressed}, ${skipped.length} not applicable${lists}`
  return row("suite", true, `${words}${inBrackets(skipped, maxDetailLength - words.length - ending.length)}${ending}`)
}
