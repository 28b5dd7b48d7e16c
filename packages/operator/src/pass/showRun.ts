import { isFinished } from "@seatrial/domain"
import { Effect } from "effect"
import { patchStatus } from "../apply/patchStatus.ts"
import { progressOf } from "../apply/progressOf.ts"
import { recordEngines } from "../apply/recordEngines.ts"
import { recordProgress } from "../apply/recordProgress.ts"
import { isAtMaximum } from "../decide/autoscale.ts"
import { shownEngine } from "../decide/fleet.ts"
import { stoppedMove } from "../decide/stoppedMove.ts"
import { suspicionOf } from "../decide/suspect.ts"
import { whyNoTraffic } from "../decide/traffic.ts"
import { enginesOf } from "../observation/engines.ts"
import { isServed } from "../observation/isServed.ts"
import type { Observation } from "../observation/Observation.ts"
import type { RunMemory } from "../RunMemory.ts"
import type { AppliedDecision } from "./applyDecision.ts"
import type { DecidedRun } from "./decideRun.ts"
import type { Reconciler } from "./Reconciler.ts"

interface Messages {
  /** For the cluster administrator. */
  readonly message: string
  readonly publicMessage: string
}

const messagesOf = ({ decision }: DecidedRun, { refusal }: AppliedDecision): Messages => {
  const { message, publicMessage = message } = decision
  if (refusal === null) return { message, publicMessage }
  const refused = `The cluster refuses ${refusal.object}: ${refusal.message.slice(0, 500)}`
  if (refusal.kind === "optional") return { message: `${message} ${refused}`, publicMessage }
  return {
    message: refused,
    publicMessage: "The cluster refuses an object of the run. The cluster administrator must change that. The request is repeated."
  }
}

/**
 * The refused object if it was refused more than once. What an earlier attempt left behind may be gone at the second
 * request.
 */
const lastingRefusal = ({ refusal }: AppliedDecision, now: number) => (refusal === null || now <= refusal.since ? null : refusal)

/**
 * The pods to show. The engine of a finished run that only reused it belongs to another run, unless this run serves.
 */
const shownPods = ({ pool }: RunMemory, { gathered, now, observation, run }: DecidedRun, shown: Observation) => {
  const owns = !isFinished(run.phase) || run.engineRun === run.id || isServed(observation)
  const own = enginesOf(observation).filter(({ alone }) => alone.pod !== null).length
  const serving = isServed(observation) || run.predecessor === null ? run.engineRun : run.predecessor.run
  const lacks = pool.lacks(serving)
  const limit = lacks ?? (isAtMaximum(run, observation.load, now) ? ("maximum" as const) : lacks)
  const engines = { own: owns ? own : 0, earlier: gathered.earlierEngines, lacks: limit }
  return owns ? { pod: shown.pod, pods: gathered.pods, engines } : { pod: null, pods: [], engines }
}

/**
 * Shows the API and the cluster what the run does or waits for. Returns the delays until the next attempts of what
 * could not be written yet.
 */
export const showRun = Effect.fnUntraced(function* ({ backlog, memory }: Reconciler, decided: DecidedRun, applied: AppliedDecision) {
  const { decision, gathered, isIdle, now, observation, run, unfunded } = decided
  const { message, publicMessage } = messagesOf(decided, applied)
  const progress = progressOf(observation, publicMessage)
  const unrecorded = yield* recordProgress({ run, progress, backlog: backlog(), now })
  const shown = shownEngine(observation)
  const stopped = isServed(observation) ? stoppedMove(observation) : null
  const pods = shownPods(memory, decided, shown)
  yield* recordEngines(run, pods.engines)
  const { resource } = applied
  if (resource === null || decision.actions.some(({ _tag }) => _tag === "RemoveResource")) return [unrecorded]
  const unshown = yield* patchStatus({
    ...pods,
    statusWrites: memory.statusWrites,
    backlog: backlog(),
    run,
    fetch: observation.fetch,
    node: gathered.node,
    progress,
    refusal: lastingRefusal(applied, now),
    resource,
    message,
    idle: isIdle,
    unfunded,
    withheld: whyNoTraffic(shown, now),
    stopped: stopped === null ? null : `${stopped.message} ${stopped.remedy}`,
    suspicion: suspicionOf(observation),
    classGone: observation.podClass === null,
    now
  })
  return [unrecorded, unshown]
})
