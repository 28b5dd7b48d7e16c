import { assert, describe, it } from "@effect/vitest"
import { Commit } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { manifestSha256 } from "@seatrial/hub"
import type { RunRevision } from "@seatrial/store"
import { enginePod } from "../../src/apply/engineObjects.ts"
import { weightsManifest, weightsPath, weightsSize, weightsWords } from "../../src/resources/weightFiles.ts"
import { commit, podClass, revision, run } from "../observations.ts"

const baseCommit = Commit.make("b".repeat(40))
const files = [{ path: "adapter_model.safetensors", size: 1_000, blob_id: "c".repeat(40), sha256: "d".repeat(64) }]
const { files: baseFiles } = revision.facts
const adapted: RunRevision = {
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

describe("a revision with an adapter", () => {
  it("has its base's files and its own brought, each under its own commit, and an engine that is told of both", () => {
    assert.deepStrictEqual(weightsWords(adapted, "/weights"), [
      "--repo=seatrial/tiny-chat",
      `--commit=${baseCommit}`,
      `--directory=/weights/seatrial/tiny-chat/${baseCommit}`,
      `--manifest=${manifestSha256(baseFiles)}`,
      "--adapter-repo=acme/tuned",
      `--adapter-commit=${commit}`,
      `--adapter-directory=/weights/acme/tuned/${commit}`,
      `--adapter-manifest=${manifestSha256(files)}`
    ])
    assert.strictEqual(weightsSize(adapted), 2 ** 20 + 1_000)
    const engine = engineFor("reference") ?? assert.fail()
    const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] }
    const pod = enginePod({ run, revision: adapted, podClass, engine, settings, weightsClaim: "weights" })
    const args: ReadonlyArray<string> = JSON.parse(JSON.stringify(pod)).spec.containers[0].args
    assert.includeMembers(
      [...args],
      [`--model=/models/seatrial/tiny-chat/${baseCommit}`, `--lora-modules=adapter=/models/acme/tuned/${commit}`, "--enable-lora"]
    )
  })

  it("counts as stored only where both lists of files are what they were: the same of another base is none of it", () => {
    const other = {
      ...adapted,
      facts: { ...adapted.facts, adapter: { ...(adapted.facts.adapter ?? assert.fail()), base: { repo: "seatrial/tiny-chat", commit, files: baseFiles } } }
    }
    const manifests = [revision, adapted, other].map(weightsManifest)
    assert.strictEqual(new Set(manifests).size, 3)
    assert.strictEqual(manifests[0], manifestSha256(baseFiles))
    assert.strictEqual(weightsPath("/models", revision), `/models/seatrial/tiny-chat/${commit}`)
  })
})
