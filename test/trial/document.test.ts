import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { suite, suiteChecks, thresholds } from "@seatrial/trial"
import { cases } from "../mutants/cases.ts"
import { tableRow } from "../mutants/table.ts"
import { ownerRows } from "./owners.ts"

const text = ["docs/reference/trial-checks.md", "test/mutants/faults.md", "test/trial/owners.md"]
  .map((page) => readFileSync(new URL(`../../${page}`, import.meta.url), "utf8"))
  .join("\n")
const rowsUnder = (head: string): ReadonlyArray<string> => {
  const [, table] = text.split(`\n| ${head} |`)
  return (table?.split("\n\n")[0] ?? "").split("\n").filter((line) => line.startsWith("| "))
}

describe("the documents of the trial", () => {
  it("name the version of the suite", () => {
    const page = readFileSync(new URL("../../docs/explanation/trial.md", import.meta.url), "utf8")
    assert.include(page, `The suite is \`${suite.name} ${suite.version}\`.`)
  })

  it("lists exactly the checks of the suite, each in a row of its class", () => {
    const letters = { required: "R", capability: "C", informs: "I" }
    const documented = rowsUnder("Check").flatMap((row) => {
      const [names = "", kind = ""] = row.split(" | ")
      let fullName = ""
      return [...names.matchAll(/`([a-z_]+)`/gu)].map(([, name = ""]) => {
        // `tool_choice_auto`, `_required`: a leading underscore replaces the last word of the previous name.
        fullName = name.startsWith("_") ? fullName.replace(/_[a-z]+$/u, name) : name
        return `${fullName} ${kind.slice(0, 1)}`
      })
    })
    const checks = suiteChecks({ repeats: null, likelihood: null, fidelity: null, loadedChecksum: null })
    assert.deepStrictEqual(documented.toSorted(), checks.map(({ class: kind, name }) => `${name} ${letters[kind]}`).toSorted())
  })

  it("says of each threshold once what its source is", () => {
    const page = readFileSync(new URL("../../docs/explanation/trial.md", import.meta.url), "utf8")
    const [, section = ""] = page.split("\n### The source of all other limits\n")
    const rows = (section.split("\n## ")[0] ?? "").split("\n").filter((line) => line.startsWith("| "))
    const names = new Set(Object.keys(thresholds))
    const listed = rows.flatMap((row) => [...row.matchAll(/`([a-zA-Z]+)`/gu)].flatMap(([, name = ""]) => (names.has(name) ? [name] : [])))
    assert.deepStrictEqual(listed.toSorted(), [...names].toSorted())
  })

  it("says of each check once where its prompts come from", () => {
    const page = readFileSync(new URL("../../docs/explanation/trial.md", import.meta.url), "utf8")
    const [, section = ""] = page.split("\n### Prompts of one trial\n")
    const rows = (section.split("\n### ")[0] ?? "").split("\n").filter((line) => line.startsWith("| "))
    const listed = rows.flatMap((row) => [...row.matchAll(/`([a-z_]+)`/gu)].map(([, name]) => name))
    const checks = suiteChecks({ repeats: null, likelihood: null, fidelity: null, loadedChecksum: null }).map(({ name }) => name)
    assert.deepStrictEqual(listed.toSorted(), checks.toSorted())
  })

  it("lists exactly the fields, formats, features and paths of a catalog, with the rows that check them", () => {
    assert.deepStrictEqual(rowsUnder("Where"), ownerRows)
  })

  it("lists exactly the faults that the suite must find, with their effect, and the rows that find them also at a first trial", () => {
    const expected = cases.map(tableRow)
    assert.deepStrictEqual(rowsUnder("Fault").toSorted(), expected.toSorted())
  })
})
