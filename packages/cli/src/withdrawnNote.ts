import type { DeploymentDetail } from "@seatrial/domain"
import { escapeUnsafe } from "./plainText.ts"

/**
 * Lists the capabilities that an activated run does not serve, because they failed their checks. Undefined if there are
 * none.
 */
export const withdrawnNote = ({ checks, id }: Pick<DeploymentDetail, "checks" | "id">): string | undefined => {
  const failed = checks.filter(({ passed }) => !passed)
  if (failed.length === 0) return undefined
  const width = Math.max(...failed.map(({ name }) => name.length))
  return [
    "The trial did not confirm these capabilities, so they are not served:",
    ...failed.map(({ detail = "", name }) => `  ${name.padEnd(width)}  ${detail}`.trimEnd()),
    `\`seatrial status ${id}\` shows every check, docs/reference/trial-checks.md explains them, and \`seatrial catalog --own --json\` lists what is served.`
  ]
    .map(escapeUnsafe)
    .join("\n")
}
