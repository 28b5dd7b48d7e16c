import { type DeploymentDetail, readUnconfirmed } from "@seatrial/domain"
import { escapeUnsafe } from "./plainText.ts"

/** Lists the capabilities that an activated run does not serve, because its trial did not observe them working. Undefined if there are none. */
export const withdrawnNote = ({ checks, id }: Pick<DeploymentDetail, "checks" | "id">): string | undefined => {
  const failed = checks.filter(({ passed }) => !passed)
  // Checks that did not run, or that observed nothing, have no row. Only the text of the suite row names them, and it can be truncated.
  const summary = checks.find(({ name }) => name === "suite")?.detail ?? ""
  const unchecked = readUnconfirmed(summary)
  if (failed.length === 0 && unchecked.length === 0) return undefined
  const width = Math.max(...failed.map(({ name }) => name.length))
  return [
    "Not served, because the trial did not confirm that it works:",
    ...failed.map(({ detail = "", name }) => `  ${name.padEnd(width)}  ${detail}`.trimEnd()),
    ...unchecked.map((words) => `  ${words}`),
    `\`seatrial status ${id}\` shows every check, docs/reference/trial-checks.md explains them, and \`seatrial catalog --own --json\` lists what is served.`
  ]
    .map(escapeUnsafe)
    .join("\n")
}
