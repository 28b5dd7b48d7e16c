import { OrgId, SuspicionId } from "@seatrial/domain"
import type { UnsentAlarm } from "@seatrial/store"
import { Schema } from "effect"

/** An alarm that was not sent. `number`: 0 to 9. */
export const alarmOf = (number: number): UnsentAlarm => ({
  orgId: Schema.decodeSync(OrgId)("org_01jz0000000000000000000001"),
  id: Schema.decodeSync(SuspicionId)(`sus_01jz00000000000000000000${10 + number}`),
  node: "node-1",
  suspicion: {
    id: `sus_01jz00000000000000000000${10 + number}`,
    object: "suspicion",
    model_id: "mdl_01jz0000000000000000000001",
    deployment_id: "dep_01jz0000000000000000000001",
    revision_id: "rev_01jz0000000000000000000001",
    engine: "dep-01-engine-0",
    since: "2026-11-30T10:00:00.000Z",
    withdrawn_at: null,
    probes: 3,
    evidence: 12.1,
    engines: 2,
    requests_url: "/v1/org/suspicions/sus/requests",
    created_at: "2026-11-30T10:05:00.000Z"
  }
})
