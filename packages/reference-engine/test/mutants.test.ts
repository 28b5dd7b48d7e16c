import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { engineFor } from "@seatrial/engines"
import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { parseArguments } from "../src/Arguments.ts"
import { serveWithFault } from "./engineClient.ts"
import { faultNamed, mutants } from "./mutants/index.ts"
import { makeTinyChat } from "./sample/index.ts"
import { emptyDirectory } from "./smallModel.ts"

describe("an engine with an injected fault", () => {
  it("reports the fault in its log and version, and an engine without one does not", async () => {
    const directory = emptyDirectory()
    for (const [name, bytes] of makeTinyChat({ seed: 3 })) writeFileSync(join(directory, name), bytes)
    for (const [fault, version] of [
      [faultNamed("rope_off"), "reference-0.1.0+mutant.rope_off"],
      [null, "reference-0.1.0"]
    ] as const) {
      const { client, close, lines } = await serveWithFault(fault, directory)
      const answer = Schema.decodeUnknownSync(Schema.Struct({ version: Schema.String }))(await (await fetch(`${client.address}/version`)).json())
      expect(answer.version).toBe(version)
      expect(lines.some((line) => line.includes("a fault was injected"))).toBe(fault !== null)
      await close()
    }
  })

  it("cannot be started by a flag of a deployment or an argument of the program", () => {
    const engine = engineFor("reference")
    for (const flag of ["test_only_mutant", "test-only-mutant", "mutant"]) expect(engine?.flagIssue({ [flag]: "rope_off" })).not.toBeNull()
    expect(parseArguments(["--model=x", "--test-only-mutant=rope_off"])).toBeTypeOf("string")
    expect(() => faultNamed("unknown")).toThrow("no mutant unknown")
    expect(mutants.size).toBeGreaterThan(50)
  })
})
