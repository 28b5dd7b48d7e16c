import { readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../places.ts"

const text = readFileSync(join(root, "docs/quick-start-cluster.md"), "utf8")
const [beginning = "", ...sections] = text.split(/^## (?=\d+\. )/mu)

/** The step with this number. */
export const stepOf = (number: number): string => {
  const found = sections.find((section) => section.startsWith(`${number}. `))
  if (found === undefined) throw new Error(`The quick start has no step ${number}.`)
  return found
}

/** The blocks of code of a step, by language. */
export const blocksOf = (step: string, language: "sh" | "yaml"): ReadonlyArray<string> =>
  [...step.matchAll(/^```(\w+)\n(.*?)^```$/gmsu)].flatMap(([, name, block = ""]) => (name === language ? [block] : []))

/** The code in the first column of the tables of a part of the page. */
const namesIn = (part: string): ReadonlyArray<string> =>
  [...part.matchAll(/^\| (`.*?) \|/gmu)].flatMap(([, cell = ""]) => [...cell.matchAll(/`([^`]+)`/gu)].map(([, name = ""]) => name))

/** Names of a part of the page. Throws if the page does not have one of those that are needed. */
const requireNames = (part: string, needed: ReadonlyArray<string>): void => {
  const known = namesIn(part).map((name) => name.split(":")[0])
  const missing = needed.filter((name) => !known.includes(name.split(":")[0]))
  if (missing.length > 0) throw new Error(`The quick start does not name ${missing.join(", ")}.`)
}

/** A block with the reader's own words. Throws if the page does not say that each of them is to be replaced, or if one is left. */
export const fillIn = (block: string, words: Readonly<Record<string, string>>): string => {
  requireNames(beginning, Object.keys(words))
  const filled = Object.entries(words).reduce((whole, [word, by]) => whole.replaceAll(word, by), block)
  const left = /\w+_\.\.\./u.exec(filled)?.[0]
  if (left !== undefined) throw new Error(`Nothing replaces ${left}.`)
  return filled
}

/** The leaves of an object, as `a.b`, but those that the page names as a whole. */
const pathsOf = (value: unknown, names: ReadonlyArray<string>, path: ReadonlyArray<string> = []): ReadonlyArray<string> =>
  typeof value !== "object" || value === null || Array.isArray(value) || names.includes(path.join("."))
    ? [path.join(".")]
    : Object.entries(value).flatMap(([key, member]) => pathsOf(member, names, [...path, key]))

/** Returns what a reader adds to or changes in a file. Throws if it has something that the table of the step does not name. */
export const asTheStepSays = <A extends object>(step: string, change: A): A => {
  const names = namesIn(step).map((name) => name.split(":")[0] ?? "")
  requireNames(step, pathsOf(change, names))
  return change
}
