import { createHash } from "node:crypto"
import type { Condition } from "./PodObject.ts"

/** One attempt of a job, from its pod. */
export interface Attempt {
  readonly name: string
  readonly phase: string
  readonly deleting: boolean
  /** Restarts of its containers. */
  readonly restarts: number
  /** Unix milliseconds; absent while it runs. */
  readonly finishedAt?: number
  /** Whether the job's failure policy ignores its failure. */
  readonly ignored: boolean
  /** Why its failure ends the job, if the failure policy demands this. */
  readonly fatal?: string
}

export interface JobSeen {
  readonly name: string
  readonly uid: string
  readonly completions: number
  readonly parallelism: number
  readonly backoffLimit: number
  readonly activeDeadline?: number
  readonly ttl?: number
  readonly suspended: boolean
  readonly startedAt?: number
  readonly conditions: ReadonlyArray<Condition>
  readonly attempts: ReadonlyArray<Attempt>
}

export interface JobStatus {
  readonly active: number
  readonly succeeded: number
  readonly failed: number
  readonly startedAt?: number
  readonly completedAt?: number
  readonly conditions: ReadonlyArray<{ readonly type: string; readonly reason: string; readonly message: string }>
}

export interface JobDecision {
  readonly create: ReadonlyArray<string>
  readonly remove: ReadonlyArray<string>
  /** The job's time to live has passed. */
  readonly expire: boolean
  /** Absent: no change. */
  readonly status?: JobStatus
  /** Milliseconds until the next pass, even without a change. */
  readonly again?: number
}

const firstBackOff = 1_000
const longestBackOff = 60_000
const nothing = { create: [], remove: [], expire: false }

const finished = (conditions: ReadonlyArray<Condition>) =>
  conditions.find(({ type, status }) => (type === "Complete" || type === "Failed") && status === "True")

/**
 * The name of the job's nth pod, from 0. It is deterministic, so that a controller that is killed between two writes
 * creates no duplicates. Five characters identify the job, so that a new job with the same name does not meet the pods
 * of the old one.
 */
export const attemptName = (job: { readonly name: string; readonly uid: string }, attempt: number) =>
  `${job.name.slice(0, 50)}-${createHash("sha256").update(job.uid).digest("hex").slice(0, 5)}-${attempt}`

const nextNames = (job: JobSeen, count: number): ReadonlyArray<string> => {
  const taken = new Set(job.attempts.map(({ name }) => name))
  const names: Array<string> = []
  for (let attempt = 0; names.length < count; attempt++) {
    const name = attemptName(job, attempt)
    if (!taken.has(name)) names.push(name)
  }
  return names
}

const verdict = (job: JobSeen, failures: number, startedAt: number, now: number) => {
  const fatal = job.attempts.find((attempt) => attempt.fatal !== undefined)?.fatal
  if (fatal !== undefined) return { reason: "PodFailurePolicy", message: fatal }
  if (job.activeDeadline !== undefined && now >= startedAt + job.activeDeadline) {
    return { reason: "DeadlineExceeded", message: "Job was active longer than specified deadline" }
  }
  return failures > job.backoffLimit ? { reason: "BackoffLimitExceeded", message: "Job has reached the specified backoff limit" } : undefined
}

/** The pods of a job by their state. */
interface Tally {
  /** Pods that have not ended. `active`: without pods that are being deleted. */
  readonly running: ReadonlyArray<Attempt>
  readonly active: ReadonlyArray<Attempt>
  readonly failed: ReadonlyArray<Attempt>
  readonly succeeded: number
  readonly startedAt: number
}

const tallyOf = ({ attempts, startedAt }: JobSeen, now: number): Tally => {
  const running = attempts.filter(({ phase }) => phase !== "Succeeded" && phase !== "Failed")
  return {
    running,
    active: running.filter(({ deleting }) => !deleting),
    failed: attempts.filter(({ phase, ignored }) => phase === "Failed" && !ignored),
    succeeded: attempts.filter(({ phase }) => phase === "Succeeded").length,
    startedAt: startedAt ?? now
  }
}

/** A job that has ended is removed after its time to live. */
const afterEnd = (job: JobSeen, now: number): JobDecision | null => {
  const end = finished(job.conditions)
  if (end === undefined) return null
  if (job.ttl === undefined) return nothing
  const left = Date.parse(end.lastTransitionTime ?? "") + job.ttl - now
  return left > 0 ? { ...nothing, again: left } : { ...nothing, expire: true }
}

/** Ends the active pods of a job and sets its conditions. */
const stopped = ({ active, failed, succeeded, startedAt }: Tally, status: Partial<JobStatus> & Pick<JobStatus, "conditions">): JobDecision => ({
  ...nothing,
  remove: active.map(({ name }) => name),
  status: { active: 0, succeeded, failed: failed.length, startedAt, ...status }
})

const whenSuspended = (job: JobSeen, { active, failed, succeeded }: Tally): JobDecision | null => {
  if (!job.suspended) return null
  const conditions = [{ type: "Suspended", reason: "JobSuspended", message: "Job suspended" }]
  return { ...nothing, remove: active.map(({ name }) => name), status: { active: 0, succeeded, failed: failed.length, conditions } }
}

const whenComplete = (job: JobSeen, tally: Tally, now: number): JobDecision | null => {
  if (tally.succeeded < job.completions) return null
  const completedAt = Math.max(0, ...job.attempts.map(({ phase, finishedAt }) => (phase === "Succeeded" ? (finishedAt ?? now) : 0)))
  return stopped(tally, { completedAt, conditions: [{ type: "Complete", reason: "CompletionsReached", message: "Reached expected number of succeeded pods" }] })
}

const whenFailed = (job: JobSeen, tally: Tally, now: number): JobDecision | null => {
  const failures = tally.failed.length + tally.active.reduce((sum, { restarts }) => sum + restarts, 0)
  const target = job.conditions.find(({ type, status }) => type === "FailureTarget" && status === "True")
  const why = target === undefined ? verdict(job, failures, tally.startedAt, now) : { reason: target.reason ?? "", message: target.message ?? "" }
  if (why === undefined) return null
  // As in Kubernetes, a job has only failed when none of its pods runs any more.
  const types = tally.running.length === 0 ? ["FailureTarget", "Failed"] : ["FailureTarget"]
  return stopped(tally, { conditions: types.map((type) => ({ type, ...why })) })
}

/** Milliseconds until the next pod may start after a failure. */
const pauseAfter = (failed: ReadonlyArray<Attempt>, now: number): number => {
  if (failed.length === 0) return 0
  const last = Math.max(0, ...failed.map(({ finishedAt }) => finishedAt ?? 0))
  return Math.max(0, last + Math.min(firstBackOff * 2 ** (failed.length - 1), longestBackOff) - now)
}

/** Creates the missing pods, after a pause if the last one failed. */
const whenRunning = (job: JobSeen, { active, failed, running, startedAt, succeeded }: Tally, now: number): JobDecision => {
  const deadline = job.activeDeadline === undefined ? undefined : startedAt + job.activeDeadline - now
  const wait = pauseAfter(failed, now)
  const missing = Math.max(0, Math.min(job.parallelism, job.completions - succeeded) - running.length)
  const isPaused = wait > 0 && missing > 0
  const create = isPaused ? [] : nextNames(job, missing)
  const again = [deadline, isPaused ? wait : undefined].filter((each) => each !== undefined)
  return {
    create,
    remove: [],
    expire: false,
    status: { active: active.length + create.length, succeeded, failed: failed.length, startedAt, conditions: [] },
    ...(again.length === 0 ? {} : { again: Math.min(...again) })
  }
}

/**
 * The rules of a `batch/v1` Job as a pure function. In contrast to Kubernetes, the pause after a failure begins at one
 * second and is limited to one minute.
 */
export const decideJob = (job: JobSeen, now: number): JobDecision => {
  const tally = tallyOf(job, now)
  return afterEnd(job, now) ?? whenSuspended(job, tally) ?? whenComplete(job, tally, now) ?? whenFailed(job, tally, now) ?? whenRunning(job, tally, now)
}
