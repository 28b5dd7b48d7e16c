import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"

const root = join(import.meta.dirname, "../..")
const Manifest = Schema.fromJsonString(Schema.Struct({ name: Schema.String, dependencies: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)) }))
const packages = globSync("packages/*/package.json", { cwd: root }).sort()

describe("a package", () => {
  it.each(packages)("%s declares every other package of the product that its programs import", (file) => {
    const { dependencies = {}, name } = Schema.decodeUnknownSync(Manifest)(readFileSync(join(root, file), "utf8"))
    const sources = globSync("src/**/*.ts", { cwd: join(root, file, "..") })
    assert.isNotEmpty(sources)
    const imported = sources.flatMap((source) => [
      ...readFileSync(join(root, file, "..", source), "utf8").matchAll(/(?:from|import\() ?"(@seatrial\/[a-z-]+)/gu)
    ])
    const missing = [...new Set(imported.map(([, other = ""]) => other))].filter((other) => other !== name && !(other in dependencies))
    assert.deepStrictEqual(missing, [])
  })
})

describe("the page of dependencies", () => {
  it("names each list of Python packages that has no hashes", () => {
    const page = readFileSync(join(root, "docs/reference/dependencies.md"), "utf8")
    const lists = globSync("{test,tools}/**/requirements.txt", { cwd: root, exclude: (path) => path.includes("node_modules") })
    const unhashed = lists.filter((list) => !readFileSync(join(root, list), "utf8").includes("--hash="))
    const [, named = ""] = /Only those of `([^`]+)` are pinned by version without hashes/.exec(page) ?? []
    assert.deepStrictEqual(unhashed, [`${named}/requirements.txt`])
  })
})
