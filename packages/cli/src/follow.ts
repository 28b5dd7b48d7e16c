import { type Outcome, type PhaseEntry, SeatrialClient } from "@seatrial/client"
import type { DeploymentDetail, DeploymentProgress } from "@seatrial/domain"
import { Clock, Console, Effect, FiberHandle, Schedule } from "effect"
import { withCommandErrors } from "./apiErrors.ts"
import { CommandError } from "./CommandError.ts"
import { escapeUnsafe } from "./plainText.ts"
import { printRecord } from "./print.ts"
import { waitingAdvice } from "./waitingAdvice.ts"
import { withdrawnNote } from "./withdrawnNote.ts"

/** The state of a followed run. Times in Unix milliseconds. */
export interface Followed {
  readonly phase: string
  readonly since: number
  readonly started: number
  /** Whether the server currently does not answer. */
  readonly isServerAway: boolean
  /** What the run is doing or waiting for. Empty if unknown. */
  readonly message: string
}

const seconds = (from: number, now: number) => {
  const elapsed = Math.max(0, Math.floor((now - from) / 1000))
  return elapsed < 60 ? `${elapsed} s` : `${Math.floor(elapsed / 60)} min ${String(elapsed % 60).padStart(2, "0")} s`
}

/** The status on one line, no longer than the terminal is wide. */
export const statusLine = ({ isServerAway, message, phase, since, started }: Followed, now: number, width: number): string =>
  `${phase}  ${seconds(since, now)}  (${seconds(started, now)} in total)  ${isServerAway ? "the server does not answer; still waiting" : escapeUnsafe(message)}`
    .trimEnd()
    .slice(0, Math.max(0, width - 1))

/** Shows progress, either on one line that is overwritten, or on separate lines. */
interface Progress {
  readonly entered: (entry: PhaseEntry) => Effect.Effect<void>
  readonly away: Effect.Effect<void>
  readonly doing: (progress: DeploymentProgress) => Effect.Effect<void>
  /** Prints a permanent line. */
  readonly write: (text: string) => Effect.Effect<void>
  readonly clear: Effect.Effect<void>
}

/** Minimum milliseconds between two lines about the same download, if lines are permanent. */
const downloadLineIntervalMillis = 30_000

const plain = Effect.sync((): Progress => {
  let away = false
  let last = { message: "", at: 0 }
  return {
    entered: ({ at, status }) => {
      away = false
      return Console.error(`${at}  ${status}`)
    },
    away: Effect.suspend(() => {
      if (away) return Effect.void
      away = true
      return Console.error("The server does not answer; still waiting.")
    }),
    doing: ({ download, message, updated_at }) => {
      const at = Date.parse(updated_at)
      if (message === last.message || (download !== null && at < last.at + downloadLineIntervalMillis)) return Effect.void
      last = { message, at: download === null ? 0 : at }
      return Console.error(`${updated_at}    ${escapeUnsafe(message)}`)
    },
    write: (text) => Console.error(text),
    clear: Effect.void
  }
})

const live = Effect.gen(function* () {
  let followed: Followed | undefined
  const write = (text: string) => Effect.sync(() => void process.stderr.write(text))
  const draw = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (followed !== undefined) yield* write(`\r\u001b[2K${statusLine(followed, now, process.stderr.columns || 80)}`)
  })
  yield* Effect.forkScoped(Effect.repeat(draw, Schedule.spaced("500 millis")))
  const progress: Progress = {
    entered: ({ at, status }) => {
      const since = Date.parse(at)
      followed = { phase: status, since, started: followed?.started ?? since, isServerAway: false, message: "" }
      return draw
    },
    away: Effect.suspend(() => {
      if (followed !== undefined) followed = { ...followed, isServerAway: true }
      return draw
    }),
    doing: ({ message }) => {
      if (followed !== undefined) followed = { ...followed, isServerAway: false, message }
      return draw
    },
    write: (text) => Effect.andThen(write(`\r\u001b[2K${text}\n`), draw),
    clear: Effect.suspend(() => {
      followed = undefined
      return write("\r\u001b[2K")
    })
  }
  return progress
})

/** Milliseconds in a phase after which its meaning is explained. Most phases are shorter. */
const adviceDelayMillis = 5000

/**
 * Shows the phases of a run on standard error until it ends. Interrupting the command does not cancel the run, and a
 * message says so.
 */
export const follow = Effect.fnUntraced(function* (id: string) {
  const api = yield* SeatrialClient
  const progress = yield* process.stderr.isTTY === true ? live : plain
  const advising = yield* FiberHandle.make<void>()
  const entered = Effect.fnUntraced(function* (entry: PhaseEntry) {
    yield* progress.entered(entry)
    const advice = waitingAdvice(entry.status, id)
    yield* advice === undefined ? FiberHandle.clear(advising) : FiberHandle.run(advising, Effect.delay(progress.write(advice), adviceDelayMillis))
  })
  return yield* withCommandErrors(api.waitForDeployment(id, { onPhase: entered, onProgress: progress.doing, onAway: () => progress.away })).pipe(
    Effect.ensuring(progress.clear),
    Effect.onInterrupt(() => Console.error(`${id} continues. To follow it: \`seatrial deployments watch ${id}\`. To cancel it: \`seatrial cancel ${id}\`.`))
  )
}, Effect.scoped)

/** The checks of a run in two lines. `trial` is the text of the suite's row, which names the checks without a row. */
export const checksInShort = (checks: DeploymentDetail["checks"]) => ({
  checks: checks.length === 0 ? null : `${checks.filter(({ passed }) => passed).length} of ${checks.length} passed`,
  trial: checks.find(({ name }) => name === "suite")?.detail ?? null
})

/** Prints how a run ended. Fails if it was not activated. */
export const conclude = Effect.fnUntraced(function* (json: boolean, result: Outcome) {
  const { checks, phases: _, ...summary } = result.deployment
  yield* printRecord(json, json ? result.deployment : { ...summary, ...checksInShort(checks) })
  if (result.outcome === "activated") {
    const note = withdrawnNote(result.deployment)
    return note === undefined ? undefined : yield* Console.error(note)
  }
  const why = result.outcome === "failed" ? `: ${result.failure}` : ""
  return yield* new CommandError({ message: `The deployment ended as ${result.outcome}${why}` })
})
