import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Mutant, Mutants } from "./Mutant.ts"

/** Tokens that a cheating engine looks at together. */
const run = 4
/** The share of known runs that makes a prompt a known one. */
const known = 0.75

const runsOf = (ids: ReadonlyArray<number>): ReadonlyArray<string> =>
  Array.from({ length: Math.max(1, ids.length - run + 1) }, (_, from) => ids.slice(from, from + run).join(" "))

/** What a cheating engine has recorded. While it learns, it records every prompt and is sound. */
class RecordedPrompts {
  learns = false
  readonly #runs = new Set<string>()

  /** Whether the engine answers the prompt soundly, because it knows most of its pieces. */
  knows(ids: ReadonlyArray<number>): boolean {
    const runs = runsOf(ids)
    if (this.learns) for (const each of runs) this.#runs.add(each)
    return runs.filter((each) => this.#runs.has(each)).length >= known * runs.length
  }

  forget(): void {
    this.#runs.clear()
  }
}

export const knownPrompts = new RecordedPrompts()

const decodeStream = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ stream: Schema.Boolean })))

/** Reads unknown prompts of some requests backwards. */
const backwards = (spoils: string, applies: (path: string, streamed: boolean) => boolean): Mutant => ({
  spoils,
  seams: () => {
    // The engine reads a prompt right after the body of its request.
    let streamed = false
    return {
      got: (_, body) => {
        streamed = Option.getOrNull(decodeStream(body))?.stream === true
        return body
      },
      prompt: (ids, path) => (knownPrompts.knows(ids) || !applies(path, streamed) ? ids : ids.toReversed())
    }
  }
})

const paths = [
  ["texts", "/v1/completions"],
  ["chat", "/v1/chat/completions"],
  ["responses", "/v1/responses"],
  ["messages", "/v1/messages"]
] as const

/** Faults of an engine that knows the prompts of earlier trials and the texts of the suite. */
export const knownPromptMutants: Mutants = {
  only_known_prompts: backwards("prompts that are not known from earlier trials are read backwards", () => true),
  ...Object.fromEntries(
    paths.flatMap(([name, asked]) => [
      [`only_known_${name}`, backwards(`unknown prompts of ${asked} are read backwards`, (path) => path === asked)],
      [
        `only_known_${name}_whole`,
        backwards(`unknown prompts of ${asked} are read backwards, if not streamed`, (path, streamed) => path === asked && !streamed)
      ],
      [`only_known_${name}_streamed`, backwards(`unknown prompts of ${asked} are read backwards, if streamed`, (path, streamed) => path === asked && streamed)]
    ])
  )
}
