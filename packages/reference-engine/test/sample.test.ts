import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { makeTinyChat } from "./sample/index.ts"

const hashes = (files: ReadonlyMap<string, Uint8Array>) =>
  Object.fromEntries([...files].map(([name, bytes]) => [name, createHash("sha256").update(bytes).digest("hex").slice(0, 16)]))

describe("the sample model", () => {
  it("is the same on every machine, byte for byte", () => {
    expect(hashes(makeTinyChat({ seed: 1 }))).toMatchInlineSnapshot(`
      {
        "README.md": "333e18eb06aff64c",
        "config.json": "c2b415fa1ff73afb",
        "generation_config.json": "d7951ba9fb78ff92",
        "model.safetensors": "1492d3f8d41a463e",
        "special_tokens_map.json": "ce06e86533439b42",
        "tokenizer.json": "4b191fe511baf47f",
        "tokenizer_config.json": "d43c84aefd8cf51d",
      }
    `)
  })

  it("has different weights for another seed or the second variant, and the same tokenizer", () => {
    const [first, second, other] = [makeTinyChat({ seed: 1 }), makeTinyChat({ seed: 1, variant: "second" }), makeTinyChat({ seed: 2 })].map(hashes)
    expect(new Set([first?.["model.safetensors"], second?.["model.safetensors"], other?.["model.safetensors"]]).size).toBe(3)
    expect(second?.["README.md"]).not.toBe(first?.["README.md"])
    expect(second?.["tokenizer.json"]).toBe(first?.["tokenizer.json"])
  })
})
