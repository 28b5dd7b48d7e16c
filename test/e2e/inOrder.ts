import { assert } from "@effect/vitest"
import { canEnter, type DeploymentDetail, type Phase } from "@seatrial/domain"

/** Asserts that every phase change is allowed, and that phases repeat only after lost capacity. */
export const inOrder = ({ phases }: DeploymentDetail) => {
  let requeues = 0
  let from: Phase = "screening"
  const [first, ...rest] = phases.map(({ status }) => status)
  assert.strictEqual(first, "screening")
  for (const to of rest) {
    assert.isTrue(canEnter(from, to, requeues), `${from} to ${to}`)
    if (to === "queued" && (from === "provisioning" || from === "booting")) requeues++
    from = to
  }
}
