import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join, matchesGlob } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { parse } from "yaml"

const root = join(import.meta.dirname, "../..")
const read = (file: string) => readFileSync(join(root, file), "utf8")

const Package = Schema.fromJsonString(
  Schema.Struct({
    bin: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
    devDependencies: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
  })
)
const packageOf = (folder: string) => Schema.decodeUnknownSync(Package)(read(join(folder, "package.json")))

const lines = read("Containerfile")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => {
    const [instruction = "", ...words] = line.split(/\s+/u)
    return { instruction, words, text: words.join(" ") }
  })
const starts = lines.flatMap(({ instruction }, at) => (instruction === "FROM" ? [at] : []))
const [build = [], rootStage = [], image = []] = starts.map((start, at) => lines.slice(start, starts[at + 1]))
const only = (stage: typeof lines, instruction: string) => stage.filter((line) => line.instruction === instruction)

// These tests need no container engine. test/cluster/image.test.ts executes the lines of the first stage and runs the result.
describe("the Containerfile", () => {
  it("builds on the tested Node version, takes no layer of it, and has only instructions that this test covers", () => {
    const [base, ...further] = lines.slice(0, starts[0]).map(({ text }) => text)
    assert.deepStrictEqual(further, [])
    // A tag can move to another image. A digest cannot.
    assert.match(base ?? "", /@sha256:[0-9a-f]{64}$/)
    assert.strictEqual(base?.split("@")[0], `NODE=docker.io/library/node:${packageOf(".").devDependencies?.node}-bookworm-slim`)
    assert.deepStrictEqual(
      starts.map((at) => lines[at]?.text),
      [`\${NODE} AS build`, `\${NODE} AS root`, "scratch"]
    )
    assert.deepStrictEqual(
      [...new Set([...build, ...rootStage, ...image].map(({ instruction }) => instruction))].sort(),
      ["CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "RUN", "USER", "WORKDIR"].sort()
    )
  })

  it("copies only tracked files that .containerignore includes, each to its own path", () => {
    const ignored = read(".containerignore").split("\n")
    assert.strictEqual(ignored[0], "**")
    for (const { words } of only(build, "COPY")) {
      const [target = "", ...sources] = words.toReversed()
      for (const source of sources) {
        assert.isAbove(execFileSync("git", ["ls-files", "--", source], { cwd: root, encoding: "utf8" }).length, 0, source)
        assert.include(ignored, `!${source}`)
        assert.isTrue(target === "./" ? !source.includes("/") : target === source, `${source} to ${target}`)
      }
    }
  })

  it("keeps of each package only what a program reads: no tests, samples or stand-ins", () => {
    const removed = only(build, "RUN").flatMap(({ text }) => (text.startsWith("rm -rf ") ? text.split(" ").slice(2) : []))
    const sources = only(build, "COPY").flatMap(({ words }) => words.slice(0, -1))
    const copied = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...sources], { cwd: root, encoding: "utf8" })
      .split("\n")
      .filter((file) => file.startsWith("packages/") && existsSync(join(root, file)))
    const kept = copied.filter((file) => !removed.some((path) => matchesGlob(file, `${path}/**`)))
    assert.isAbove(kept.length, 500)
    // A rule of .dependency-cruiser.json adds that a program reaches each file in src. The operator reads the program of
    // the reference.
    assert.deepStrictEqual(
      kept.filter((file) => !/^packages\/[^/]+\/(package\.json|README\.md|src\/.+|reference\/reference\.py)$/u.test(file)),
      []
    )
  })

  it("removes only existing paths, and installs without development dependencies and scripts", () => {
    const runs = only(build, "RUN").map(({ text }) => text)
    const removed = runs.flatMap((text) => (text.startsWith("rm -rf ") ? text.split(" ").slice(2) : []))
    assert.isAbove(removed.length, 0)
    for (const path of removed) assert.isTrue(existsSync(join(root, path.split("/*")[0] ?? "")), path)
    const [install = "", prune] = runs.slice(-2)
    for (const word of ["npm ci", "--omit=dev", "--ignore-scripts"]) assert.include(install, word)
    // Installation comes after the sources, because it links the workspaces.
    assert.deepStrictEqual(
      build.slice(-2).map(({ text }) => text),
      [install, prune]
    )
    assert.strictEqual(prune, "sh tools/image/container/prune.sh")
  })

  it("copies only the folders that the first stages made, and starts the command as the account of the chart", () => {
    const [place = ""] = only(build, "WORKDIR").map(({ text }) => text)
    assert.deepStrictEqual(
      only(image, "COPY").map(({ text }) => text),
      ["--from=root /image /", `--from=build ${place} ${place}`]
    )
    assert.isTrue(only(image, "ENV").some(({ text }) => text.startsWith(`PATH=${place}/node_modules/.bin:`)))
    const values = Schema.decodeUnknownSync(Schema.Struct({ podUser: Schema.Int }))(parse(read("charts/seatrial/values.yaml")))
    assert.deepStrictEqual(
      only(image, "USER").map(({ text }) => text),
      [`${values.podUser}:${values.podUser}`]
    )
    assert.deepStrictEqual(
      only(image, "ENTRYPOINT").map(({ text }) => text),
      ['["seatrial"]']
    )
    const commands = ["cli", "reference-engine"].flatMap((name) =>
      Object.entries(packageOf(`packages/${name}`).bin ?? {}).map(([command, file]) => [command, join("packages", name, file)])
    )
    assert.deepStrictEqual(
      commands.map(([command]) => command),
      ["seatrial", "seatrial-reference-engine"]
    )
    for (const [command, file = ""] of commands) assert.match(read(file), /^#!\/usr\/bin\/env (-S )?node/u, command)
  })
})
