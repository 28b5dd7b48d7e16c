import { assert, describe, it } from "@effect/vitest"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { answerItems, itemsFor, type MergedModel, scoreTexts } from "@seatrial/trial"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { cases } from "./cases.ts"
import { serveSample } from "./serveSample.ts"
import { adapterKillers } from "./table.ts"
import { sampleSubject, trySample } from "./trySample.ts"

/** Parameters of the sample model. They determine the number of items. */
const parameters = 722_048

/** The answers of the merged model in a separate engine, which a run of an adapter collects first. */
const askMerged = Effect.gen(function* () {
  const subject = yield* sampleSubject(yield* serveSample({ files: trainedFiles("tiny-chat-sailor") }), { change: (bare) => ({ ...bare, salt: "merged" }) })
  const merged: MergedModel = {
    answers: yield* answerItems(subject, itemsFor(parameters)),
    scores: yield* scoreTexts(subject),
    merged: { withinUlpMin: 1, othersEqual: true },
    baseQuantized: false,
    everyModule: true
  }
  return merged
}).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

describe("for an adapter the check suite", () => {
  let merged: MergedModel | null = null

  const failures = (fault: string | undefined, rows: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      merged ??= yield* askMerged
      const { files, mutant } = cases.find(({ name }) => name === fault) ?? {}
      const served = yield* serveSample({
        adapter: trainedFiles("tiny-chat-adapter"),
        ...(mutant === undefined ? {} : { mutant }),
        ...(files === undefined ? {} : { files: files() })
      })
      const { report } = yield* trySample(served, {
        rows: (name) => rows.includes(name),
        change: (subject) => ({ ...subject, servedName: "adapter", listedName: "adapter", baseName: "m", merged })
      })
      return new Map(report.checks.filter(({ passed }) => !passed).map(({ detail, name }) => [name, detail]))
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

  const rows = [...new Set(Object.values(adapterKillers).flat())]
  for (const mutant of [undefined, "noise"]) {
    it.live(`passes a correct one${mutant === undefined ? "" : ", even if the order of sums differs between batches"}`, () =>
      Effect.map(failures(mutant, rows), (failed) => assert.deepStrictEqual([...failed], []))
    )
  }

  for (const [mutant, expected] of Object.entries(adapterKillers)) {
    it.live(`finds ${mutant}: ${expected.join(", ")}`, () =>
      Effect.map(failures(mutant, expected), (failed) => assert.sameMembers([...failed.keys()], [...expected], JSON.stringify([...failed])))
    )
  }
})
