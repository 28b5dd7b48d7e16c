import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { values } from "./flagTables.ts"
import { realEngine } from "./realEngine.ts"

const text = readFileSync(new URL("../../../docs/reference/engines.md", import.meta.url), "utf8")

describe("the document of the engines", () => {
  for (const runtime of ["vllm", "sglang"] as const) {
    it(`lists each flag of ${runtime} with its values, and no other flag`, () => {
      const section = text.split(`\n## Flags of \`${runtime}\`\n`)[1]?.split("\n## ")[0] ?? ""
      const rows = section.split("\n").filter((line) => line.startsWith("| `"))
      const flags = Object.entries(values[runtime] ?? {}).map(([flag, [, refused]]) => {
        const message = realEngine(runtime).flagIssue({ [flag]: refused })?.message ?? ""
        return `| \`${flag}\` | ${message.slice(`${flag} must be `.length, -1)} |`
      })
      assert.deepStrictEqual(rows.toSorted(), flags.toSorted())
    })

    it(`names the version of ${runtime}`, () => assert.include(text, `| \`${runtime}\` | ${realEngine(runtime).version.slice(runtime.length + 1)} |`))
  }
})
