import { assert, it } from "@effect/vitest"
import { manifestSha256 } from "../src/index.ts"

const a = { path: "config.json", size: 3, blob_id: "a".repeat(40), sha256: null }
const b = { path: "model.safetensors", size: 9, blob_id: "b".repeat(40), sha256: "c".repeat(64) }

it("the manifest's hash does not depend on the order of files, and changes with every other fact", () => {
  const hash = manifestSha256([a, b])
  assert.strictEqual(manifestSha256([b, a]), hash)
  const variants = [[a], [{ ...a, size: 4 }, b], [{ ...a, path: "x" }, b], [a, { ...b, sha256: "d".repeat(64) }], [{ ...a, blob_id: "e".repeat(40) }, b]]
  assert.strictEqual(new Set([hash, ...variants.map(manifestSha256)]).size, variants.length + 1)
})
