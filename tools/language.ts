import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"

/**
 * Counts what makes comments and names of product code and tests hard to read, and fails beyond `limits`. `--list`
 * prints each finding. CONTRIBUTING.md has the rules and the glossary. The limits leave room for ordinary uses of these
 * words; lower them when the counts fall.
 */

/** Words of the private dialect of older code. The glossary in CONTRIBUTING.md has the term to use for each. */
const dialect = [
  /\b(?:told|tells?|telling|anew|in vain|once more|no more|by now|meanwhile|for ever|therein|thereof)\b/i,
  /\b(?:whoever|whatever|nobody|somebody|somewhere)\b/i,
  /\bwho (?:is|has|asks|waits|serves|leads|does)\b/i,
  /\b(?:stands?|beside|so far as|(?:is|are) known|ha(?:s|ve) to be|one that|that of|those of|what is|otherwise than|of (?:its|their) own)\b/i,
  /\bwhere (?:it|its|there|they|this|that|one|an?|the|no|nothing|none)\b/i
]
/** "if" and "when" introduce conditions, "where" introduces places. */
const condition = /\bwhere\b/gi
/** A name says what the value holds. */
const vagueName = /\b(?:const|let|readonly|function)\s+(?:told|seen|asked|given|whole|looked|named|said|found|made|kept|there|here|another|others|besides?)\b/g

const print = (line: string) => process.stdout.write(`${line}\n`)

const isListing = process.argv.includes("--list")

/** Counts the findings in the comments and names of files. */
const count = (files: ReadonlyArray<string>) => {
  const counts = { dialect: 0, where: 0, names: 0 }
  const report = (file: string, text: string) => (isListing ? print(`${file}: ${text}`) : undefined)
  for (const file of files) {
    const text = readFileSync(file, "utf8")
    for (const [comment] of text.matchAll(/\/\/[^\n]*|\/\*[\s\S]*?\*\//g)) {
      for (const line of comment.split("\n").map((each) => each.replace(/^[\s/*]+|[\s/*]+$/g, ""))) {
        counts.where += line.match(condition)?.length ?? 0
        if (!dialect.some((words) => words.test(line))) continue
        counts.dialect++
        report(file, line)
      }
    }
    for (const [name] of text.matchAll(vagueName)) {
      counts.names++
      report(file, name)
    }
  }
  return counts
}

const files = execFileSync("git", ["ls-files", "*.ts"], { encoding: "utf8" })
  .split("\n")
  .filter((file) => file.endsWith(".ts") && !/generated|sample/.test(file) && file !== "tools/language.ts")
const isTest = (file: string) => /(?:^|\/)test\//.test(file)
const scopes = [
  { what: "product", files: files.filter((file) => !isTest(file)), limits: { dialect: 50, where: 15, names: 3 } },
  { what: "tests", files: files.filter(isTest), limits: { dialect: 80, where: 20, names: 70 } }
]
for (const { files: scope, limits, what } of scopes) {
  const counts = count(scope)
  const checked = ["dialect", "where", "names"] as const
  print(`${what}: ${checked.map((key) => `${key} ${counts[key]} (at most ${limits[key]})`).join(", ")}`)
  const exceeded = checked.filter((key) => counts[key] > limits[key])
  if (exceeded.length === 0) continue
  process.stderr.write(
    `Too many of: ${exceeded.join(", ")}. Run "npm run language -- --list" to see them, and write the sentences as CONTRIBUTING.md describes.\n`
  )
  process.exitCode = 1
}
