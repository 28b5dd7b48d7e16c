import { RefusalAudience } from "@seatrial/hub"
import type { Run } from "@seatrial/store"

/**
 * The reader of the hub's refusals. No user started the run of an applied object, and its organization shares a hub
 * token.
 */
export const audienceOf = ({ orgSlug, startedBy }: Pick<Run, "orgSlug" | "startedBy">): RefusalAudience =>
  startedBy === null ? RefusalAudience.AppliedObject({ organization: orgSlug }) : RefusalAudience.ApiCaller()
