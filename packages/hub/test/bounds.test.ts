import { assert, describe, it } from "@effect/vitest"
import { HubRefusal } from "../src/failures.ts"
import { licenseRefusal } from "../src/license.ts"
import { tooLargeFiles } from "../src/servingFiles.ts"

const fileOf = (path: string, size: number) => ({ path, size, blob_id: "0".repeat(40), sha256: null })
const mib = 1024 * 1024

describe("the files of a repository other than weights", () => {
  it("have a limit for each file and for all of them", () => {
    assert.isNull(tooLargeFiles([fileOf("model.safetensors", 900_000 * mib), fileOf("tokenizer.json", 40 * mib), fileOf("LICENSE", 9_000)]))
    assert.match(tooLargeFiles([fileOf("tokenizer.json", 129 * mib)]) ?? "", /^tokenizer.json is larger than/)
    assert.match(tooLargeFiles(Array.from({ length: 5 }, (_, at) => fileOf(`LICENSE-${at}`, 120 * mib))) ?? "", /together/)
  })

  it("is described in few words, however many licenses it states", () => {
    const names = Array.from({ length: 1_000 }, (_, at) => `license-${at}`)
    const lists = { allowedLicenses: [], askedLicenses: [], acceptedLicenses: [], deniedLicenses: ["license-999"] }
    const reason = licenseRefusal({ name: "license-0", names }, lists, "odd/model")
    const { code, message } = reason === null ? assert.fail("it is not refused") : new HubRefusal({ reason, commit: null })
    assert.strictEqual(code, "license_refused")
    assert.include(message, "and 995 more")
    assert.isBelow(message.length, 200)
  })
})
