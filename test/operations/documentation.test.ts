import { execFileSync } from "node:child_process"
import { existsSync, globSync, readFileSync } from "node:fs"
import { basename, dirname, join, normalize } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "yaml"
import { seatrial } from "../../packages/cli/test/runCommand.ts"

const root = join(import.meta.dirname, "../..")
const pages = globSync(["*.md", "docs/**/*.md", "charts/*/*.md", "packages/*/README.md", "test/*/*.md"], { cwd: root }).map((path) => ({
  path,
  text: readFileSync(join(root, path), "utf8")
}))

const withoutCode = (text: string) => text.replaceAll(/```.*?```/gsu, "")
const codeLines = (text: string) => [...text.matchAll(/```sh\n(.*?)```/gsu)].flatMap(([, block = ""]) => block.replaceAll("\\\n", " ").split("\n"))

const filesOfProject = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" }).split("\n")
const fileNames = new Set(filesOfProject.map((file) => basename(file)))

/** Files and folders that a page names in its text, but that do not exist: paths from the root or the folder of the page, and names of TypeScript files. */
const absentFiles = ({ path, text }: (typeof pages)[number]) =>
  [...withoutCode(text).matchAll(/`((?:packages|test|k8s|charts|tools|docs)\/[^`\s:*{}[\]]+|[\w.-]+\.ts)`/gu)].flatMap(([, name = ""]) => {
    const file = name.replace("<engine>", "vllm").replace(/\/$/u, "")
    return fileNames.has(file) || existsSync(join(root, file)) || existsSync(join(root, dirname(path), file)) || /[<>]|NNNN/u.test(file)
      ? []
      : [`${path}: ${name}`]
  })

/** Names of the anchors that a page has, as they are derived from its headings. */
const anchorsOf = (text: string) =>
  new Set(
    [...text.matchAll(/^#+ (.*)$/gmu)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
        .replaceAll(" ", "-")
    )
  )

const brokenLinks = ({ path, text }: (typeof pages)[number]) =>
  [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/gu)].flatMap(([, link = ""]) => {
    if (/^https?:/u.test(link)) return []
    const [file = "", anchor = ""] = link.split("#")
    const target = file === "" ? path : normalize(join(dirname(path), file))
    if (!existsSync(join(root, target))) return [`${path}: ${link}`]
    return anchor === "" || !target.endsWith(".md") || anchorsOf(readFileSync(join(root, target), "utf8")).has(anchor) ? [] : [`${path}: ${link}`]
  })

const helpTexts = new Map<string, string>()
const helpOf = (words: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const key = words.join(" ")
    const known = helpTexts.get(key)
    if (known !== undefined) return known
    const { out } = yield* seatrial([...words, "--help"])
    helpTexts.set(key, out)
    return out
  })
const subcommandsIn = (help: string) =>
  new Set([...(help.split("\nSUBCOMMANDS\n")[1]?.split("\n\n")[0] ?? "").matchAll(/^ {2}([a-z-]+)/gmu)].map(([, name = ""]) => name))

/** The words of each use of the command in a page, without comments and without the next command of a line. */
const commandsIn = (text: string) =>
  codeLines(text).flatMap((line) => {
    const code = (line.split(/\s#/u)[0] ?? "").replaceAll("-n seatrial", "")
    const [, words = ""] = /(?:^|.*[\s(])seatrial ([a-z].*)$/u.exec(code) ?? /^(admin .*)$/u.exec(code) ?? []
    return words === "" || words.startsWith("charts") || words.includes('"$@"')
      ? []
      : [
          words
            .split(/[|>&;]/u)[0]
            ?.trim()
            .split(/\s+/u) ?? []
        ]
  })

const chartValues: unknown = parse(readFileSync(join(root, "charts/seatrial/values.yaml"), "utf8"))
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null && !Array.isArray(value)

/** Whether the chart has a value at a path. An empty map, such as `env`, and a list take any name. */
const isChartValue = (path: string): boolean => {
  let value = chartValues
  for (const name of path.split(/[.[]/u)) {
    if (!isRecord(value) || Object.keys(value).length === 0) return Array.isArray(value) || isRecord(value)
    if (!(name in value)) return false
    value = value[name]
  }
  return true
}
const chartValuesIn = (text: string) => [...text.matchAll(/--set(?:-string)? '?([A-Za-z][\w.[\]]*)=/gu)].map(([, path = ""]) => path)

/** The problem of a use of the command: a subcommand or a flag that does not exist. */
const wrongUse = (words: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const path: Array<string> = []
    let help = yield* helpOf(path)
    for (const word of words) {
      const subcommands = subcommandsIn(help)
      if (subcommands.size === 0) break
      if (!subcommands.has(word)) return `${words.join(" ")}: there is no ${[...path, word].join(" ")}`
      path.push(word)
      help = yield* helpOf(path)
    }
    const flags = words.slice(path.length).flatMap((word) => /^(--[a-z-]+)/u.exec(word)?.[1] ?? [])
    const unknown = flags.find((flag) => !new RegExp(`${flag}[\\s,]`, "u").test(help))
    return unknown === undefined ? null : `${words.join(" ")}: there is no ${unknown}`
  })

describe("the documents", () => {
  it("link to pages and headings that exist", () => assert.deepStrictEqual(pages.flatMap(brokenLinks), []))

  it("name files that exist", () => assert.deepStrictEqual(pages.filter(({ path }) => path !== "CHANGELOG.md").flatMap(absentFiles), []))

  it("have start pages and guides of at most 1,500 words", () => {
    const short = pages.filter(({ path }) => /^README\.md$|^docs\/(?:how-to\/|quick-start)/u.test(path))
    assert.isAbove(short.length, 10)
    for (const { path, text } of short) assert.isAtMost(text.split(/\s+/u).length, 1_500, path)
  })

  it.effect("use commands and flags that exist", () =>
    Effect.gen(function* () {
      const uses = pages.flatMap(({ path, text }) => commandsIn(text).map((words) => ({ path, words })))
      assert.isAbove(uses.length, 100)
      const wrong = yield* Effect.forEach(uses, ({ path, words }) =>
        Effect.map(wrongUse(words), (problem) => (problem === null ? [] : [`${path}: ${problem}`]))
      )
      assert.deepStrictEqual(wrong.flat(), [])
    })
  )

  it("begin on a cluster with the commands of the chart's notes, which a test of the chart runs", () => {
    const subcommands = (text: string) => [...text.matchAll(/(?:^|\s)admin ([a-z]+ [a-z]+) .*acme/gmu)].map(([, words = ""]) => words)
    const notes = readFileSync(join(root, "charts/seatrial/templates/NOTES.txt"), "utf8").split("{{- else }}").at(-1) ?? ""
    const page =
      readFileSync(join(root, "docs/quick-start-cluster.md"), "utf8")
        .split("\n## ")
        .find((section) => section.includes("orgs create")) ?? ""
    assert.deepStrictEqual(subcommands(page.split("For a gated")[0] ?? ""), subcommands(notes))
    assert.strictEqual(subcommands(notes).length, 4)
  })

  it("set values that the chart has", () => {
    const used = pages.flatMap(({ path, text }) => chartValuesIn(text).map((value) => ({ path, value })))
    assert.isAbove(used.length, 10)
    assert.deepStrictEqual(
      used.filter(({ value }) => !isChartValue(value)),
      []
    )
  })

  it.effect("list each setting of each program with its default", () =>
    Effect.gen(function* () {
      const text = readFileSync(join(root, "docs/reference/settings.md"), "utf8")
      for (const program of ["server", "operator", "gateway"]) {
        const settings = [...(yield* helpOf([program])).matchAll(/^ {2}([A-Z][A-Z_]+): .*?(?: \(default (.*)\))?$/gmu)]
        assert.isAbove(settings.length, 20, program)
        for (const [, name = "", initial = ""] of settings) {
          const row = text.split("\n").find((line) => line.startsWith("|") && (line.split(" | ")[0] ?? "").includes(`\`${name}\``))
          assert.isDefined(row, name)
          if (/^[\d.]+$|seconds|minutes/u.test(initial)) assert.include(row, `\`${initial}\``.replace("millis`", "milliseconds`"), name)
        }
      }
    })
  )
})
