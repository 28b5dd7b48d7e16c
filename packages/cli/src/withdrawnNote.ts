import type { DeploymentDetail } from "@seatrial/domain"
import { escapeUnsafe } from "./plainText.ts"

/** What a run that was activated is not served with, since its trial did not see it working, and why; undefined where it saw all. */
export const withdrawnNote = ({ checks, id }: Pick<DeploymentDetail, "checks" | "id">): string | undefined => {
  const failed = checks.filter(({ passed }) => !passed)
  // Rows that were not begun, or saw nothing, stand in the last row's words alone, which may be cut.
  const said = checks.find(({ name }) => name === "suite")?.detail ?? ""
  const others = [...said.matchAll(/\d+ not (?:reached|seen) \([^)]*\)?/g)].map(([words]) => words)
  if (failed.length === 0 && others.length === 0) return undefined
  const width = Math.max(...failed.map(({ name }) => name.length))
  return [
    "Not served, since the trial did not see it working:",
    ...failed.map(({ detail = "", name }) => `  ${name.padEnd(width)}  ${detail}`.trimEnd()),
    ...others.map((words) => `  ${words}`),
    `\`seatrial status ${id}\` has every check; docs/trial.md says what each stands for, and \`seatrial catalog --own --json\` what is served.`
  ]
    .map(escapeUnsafe)
    .join("\n")
}
