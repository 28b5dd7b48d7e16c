import { it } from "@effect/vitest"
import { Effect } from "effect"
import { drawsOf } from "../faults/Draw.ts"
import { changeLease } from "./changeLease.ts"
import { clusterFaults } from "./clusterFaults.ts"
import { openFaultStage } from "./FaultStage.ts"
import { playRollout } from "./playRollout.ts"

/** SEATRIAL_FAULT_SEED chooses another run; SEATRIAL_FAULT_ROLLOUTS says how many roll-outs, two of which meet every fault once. */
const first = Number(process.env.SEATRIAL_FAULT_SEED ?? 1)
const rollouts = Number(process.env.SEATRIAL_FAULT_ROLLOUTS ?? 2)

it.live(
  "on a real control plane roll-outs survive the end of every program, a stopped leader writes nothing after another one leads, and every request is answered",
  () =>
    Effect.gen(function* () {
      const draw = drawsOf(first)
      const stage = yield* openFaultStage
      const report: Array<string> = []
      let deck: Array<(typeof clusterFaults)[number]> = []
      for (let turn = 0; turn < rollouts; turn++) {
        if (deck.length === 0)
          deck = clusterFaults
            .map((fault) => [draw.between(0, 1), fault] as const)
            .sort(([one], [other]) => one - other)
            .map(([, fault]) => fault)
        report.push(yield* playRollout(stage, first + turn, deck.splice(0, 3), draw))
      }
      report.push(yield* changeLease(stage, first + rollouts, draw))
      yield* Effect.logInfo(report.join("\n"))
    }).pipe(
      Effect.tapCause(() => Effect.logError(`To see it again: SEATRIAL_FAULT_SEED=${first} SEATRIAL_FAULT_ROLLOUTS=${rollouts}`)),
      Effect.scoped
    ),
  1_200_000 + rollouts * 600_000
)
