import { Commit } from "@seatrial/domain"
import type { RunRevision } from "@seatrial/store"
import { revision } from "./observations.ts"

export const baseCommit = Commit.make("b".repeat(40))
export const files = [{ path: "adapter_model.safetensors", size: 1_000, blob_id: "c".repeat(40), sha256: "d".repeat(64) }]
export const { files: baseFiles } = revision.facts
/** A revision with an adapter: the same model as its base. */
export const adapted: RunRevision = {
  ...revision,
  facts: {
    ...revision.facts,
    repo: "acme/tuned",
    files,
    adapter: {
      base: { repo: "seatrial/tiny-chat", commit: baseCommit, files: baseFiles },
      rank: 8,
      uniform: true,
      alpha: 16,
      rslora: false,
      named_by: "list",
      listed: ["q_proj"],
      targets: ["q_proj"],
      unpaired: [],
      experts: false,
      bytes: 1_000,
      template: "base",
      content_hash: "e".repeat(64)
    }
  }
}
