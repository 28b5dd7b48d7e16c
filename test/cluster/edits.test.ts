import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { drawsOf } from "../faults/Draw.ts"
import { clusterEdits } from "./hostileEdits/clusterEdits.ts"
import { deploymentEdits } from "./hostileEdits/deploymentEdits.ts"
import type { Edit } from "./hostileEdits/Edit.ts"
import { type EditStage, openEditStage } from "./hostileEdits/EditStage.ts"
import { engineEdits } from "./hostileEdits/engineEdits.ts"
import { watchTruth } from "./hostileEdits/watchTruth.ts"

const edits = [...deploymentEdits, ...engineEdits, ...clusterEdits]
/** Changes with the day. */
const seed = Number(process.env.EDITS_SEED ?? Math.floor(Date.now() / 86_400_000))
/** How many edits are made: all by EDITS=all, or only those whose name contains EDITS_NAME. */
const count = process.env.EDITS === "all" ? edits.length : Number(process.env.EDITS ?? 7)
const named = process.env.EDITS_NAME ?? ""

/** The edits of the seed, in an order that mixes their kinds. The next seed has the next edits, until all were made. */
const drawn = (): ReadonlyArray<Edit> => {
  const draw = drawsOf(1)
  const order = edits
    .filter(({ name }) => name.includes(named))
    .map((edit) => [draw.between(0, 1), edit] as const)
    .sort(([one], [other]) => one - other)
    .map(([, edit]) => edit)
  const start = (seed * count) % order.length
  return [...order.slice(start), ...order.slice(0, start)].slice(0, count)
}

type Watch = Effect.Success<ReturnType<typeof watchTruth>>

/** Makes one edit, waits for what it must show, takes it back, and waits until the model serves and says so. */
const play = Effect.fnUntraced(function* (stage: EditStage, { state }: Watch, { interrupts, make, name, refused, shows, undo }: Edit) {
  state.during = name
  state.mayInterrupt = interrupts === true
  const printed = yield* make(stage)
  yield* Effect.logInfo(`${name}: ${printed.trim().slice(0, 160)}`)
  if (refused !== undefined) return assert.include(printed, refused, name)
  assert.notMatch(printed, /tools\/bin\/kubectl/u, name)
  // The operator has some time to react before the edit is taken back.
  yield* Effect.sleep("1500 millis")
  const shown = shows?.(stage)
  if (shown !== undefined) yield* eventually(`${name}: it is shown`, ...shown)
  if (undo !== undefined) yield* undo(stage)
  yield* eventually(
    `${name}: the model serves and says so`,
    Effect.sync(() => `${state.ready} ${state.isAnswered}`),
    (text) => text === "True true"
  )
  state.mayInterrupt = false
})

/** The operator starts its controllers again only if they have failed. */
const restarts = (output: string): number => output.split("the controllers stopped and start again").length - 1

it.live(
  "whatever someone else edits, the operator does not crash, what serves is not stopped, and conditions and events agree with what callers get",
  () =>
    Effect.gen(function* () {
      process.stdout.write(`EDITS_SEED=${seed} EDITS=${count} of ${edits.length}\n`)
      const stage = yield* openEditStage
      const watch = yield* watchTruth(stage)
      yield* Effect.forEach(drawn(), (edit) => play(stage, watch, edit), { discard: true }).pipe(
        Effect.tapCause(() =>
          Effect.logError(`To repeat it: EDITS_SEED=${seed} EDITS=${count}\n${JSON.stringify(watch.violations)}\n${stage.operatorOutput().slice(-5_000)}`)
        )
      )
      yield* watch.stop
      assert.deepStrictEqual(watch.violations, [])
      assert.isAbove(watch.state.answers, 0)
      assert.isAtMost(restarts(stage.operatorOutput()), 1)
    }).pipe(Effect.scoped),
  300_000 + count * 120_000
)
