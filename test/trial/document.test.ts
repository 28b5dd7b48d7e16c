import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { suiteChecks } from "@seatrial/trial"
import { cases } from "../mutants/cases.ts"
import { adapterKillers, killers, unseen } from "../mutants/table.ts"
import { ownerRows } from "./owners.ts"

const text = readFileSync(new URL("../../docs/trial.md", import.meta.url), "utf8")
const rowsUnder = (head: string): ReadonlyArray<string> => {
  const [, table] = text.split(`\n| ${head} |`)
  return (table?.split("\n\n")[0] ?? "").split("\n").filter((line) => line.startsWith("| "))
}

describe("the document of the trial", () => {
  it("has each check of the suite, in a row of its class, and no other", () => {
    const letters = { required: "R", capability: "C", informs: "I" }
    const told = rowsUnder("Check").flatMap((row) => {
      const [names = "", kind = ""] = row.split(" | ")
      let whole = ""
      return [...names.matchAll(/`([a-z_]+)`/gu)].map(([, name = ""]) => {
        // `tool_choice_auto`, `_required`: the ending of the one before.
        whole = name.startsWith("_") ? whole.replace(/_[a-z]+$/u, name) : name
        return `${whole} ${kind.slice(0, 1)}`
      })
    })
    const checks = suiteChecks({ repeats: null, likelihood: null, fidelity: null, loadedChecksum: null })
    assert.deepStrictEqual(told.toSorted(), checks.map(({ class: kind, name }) => `${name} ${letters[kind]}`).toSorted())
  })

  it("has each field, form, feature and path that a catalog can show, with what sees it, and no other", () => {
    assert.deepStrictEqual(rowsUnder("Where"), ownerRows)
  })

  it("has each fault that the suite has to find, with what it spoils and the rows that find it, and no other", () => {
    const expected = cases.map(({ name, spoils }) => {
      const by = (killers[name] ?? adapterKillers[name])?.map((check) => `\`${check}\``).join(", ") || unseen[name] || "any row that it meets"
      return `| \`${name}\` | ${spoils} | ${by} |`
    })
    assert.deepStrictEqual(rowsUnder("Fault").toSorted(), expected.toSorted())
  })
})
