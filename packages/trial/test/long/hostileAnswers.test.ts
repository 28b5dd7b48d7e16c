import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

/** V8's options of the operator in the chart. */
const operator = readFileSync(new URL("../../../../charts/seatrial/templates/operator.yaml", import.meta.url), "utf8")
const options = /value: (--max-semi-space-size=\d+ --max-old-space-size=\d+)/.exec(operator)?.[1]

const Printed = Schema.fromJsonString(Schema.Struct({ ended: Schema.String }))

/** Half of that heap. The operator needs the other half for what it watches. */
const half = options?.replace(/\d+$/, (megabytes) => String(Number(megabytes) / 2))

/** What a process with this heap prints about that answer; null if it does not survive. */
const readWith = (heap: string | undefined, ...args: ReadonlyArray<string>) =>
  Effect.callback<string | null>((resume) => {
    const program = new URL("./hostileAnswersProcess.ts", import.meta.url).pathname
    execFile(process.execPath, [program, ...args], { env: { ...process.env, NODE_OPTIONS: heap } }, (error, printed) =>
      resume(Effect.succeed(error === null ? Schema.decodeUnknownSync(Printed)(printed).ended : null))
    )
  })

const read = (name: string) => readWith(half, name)

const noAnswer = "an answer without choices and usage"

describe("half of the operator's heap", () => {
  it.live(
    "holds every answer that its client decodes",
    () =>
      Effect.gen(function* () {
        assert.isDefined(options)
        for (const name of ["lists", "objects", "keys", "numbers", "members", "nested", "deep"]) assert.strictEqual(yield* read(name), noAnswer, name)
        assert.strictEqual(yield* read("sound"), "answered")
      }),
    600_000
  )

  it.live(
    "does not hold an answer of small values, which is refused",
    () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* read("too many"), "The engine's answer has more than 786432 values.")
        assert.isNull(yield* readWith(half, "too many", "decoded"))
      }),
    600_000
  )
})
