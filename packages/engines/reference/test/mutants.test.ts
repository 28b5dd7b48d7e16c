import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { engineFor } from "../../src/index.ts"
import { parseArguments } from "../src/Arguments.ts"
import { mutants } from "../src/mutants/index.ts"
import { makeTinyChat } from "../src/sample/index.ts"
import { serve } from "./engineClient.ts"
import { emptyDirectory } from "./smallModel.ts"

describe("an engine that a test has spoiled", () => {
  it("says so in its log and its version, and a sound one says nothing of the kind", async () => {
    const directory = emptyDirectory()
    for (const [name, bytes] of makeTinyChat({ seed: 3 })) writeFileSync(join(directory, name), bytes)
    for (const [words, version] of [
      [["--test-only-mutant=rope_off"], "reference-0.1.0+mutant.rope_off"],
      [[], "reference-0.1.0"]
    ] as const) {
      const { client, close, lines } = await serve(directory, ...words)
      const told = Schema.decodeUnknownSync(Schema.Struct({ version: Schema.String }))(await (await fetch(`${client.address}/version`)).json())
      expect(told.version).toBe(version)
      expect(lines.some((line) => line.includes("spoiled on purpose"))).toBe(words.length > 0)
      await close()
    }
  })

  it("is never what a pod is started as: no flag of a deployment leads there, and no name but a known one is taken", () => {
    const engine = engineFor("reference")
    for (const flag of ["test_only_mutant", "test-only-mutant", "mutant"]) expect(engine?.flagIssue({ [flag]: "rope_off" })).not.toBeNull()
    expect(parseArguments(["--model=x", "--test-only-mutant=unheard_of"])).toBeTypeOf("string")
    expect(mutants.size).toBeGreaterThan(50)
  })
})
