import { assert, describe, it } from "@effect/vitest"
import { type Attempt, attemptName, decideJob, type JobSeen } from "../../src/node/decideJob.ts"

const job: JobSeen = { name: "load", uid: "u", completions: 1, parallelism: 1, backoffLimit: 1, suspended: false, conditions: [], attempts: [] }
const pod = (number: number) => attemptName(job, number)
const attempt = (number: number, phase: string, more: Partial<Attempt> = {}): Attempt => ({
  name: pod(number),
  phase,
  deleting: false,
  restarts: 0,
  ignored: false,
  ...more
})
const failed = (number: number, finishedAt: number, more: Partial<Attempt> = {}) => attempt(number, "Failed", { finishedAt, ...more })
const done = (type: string) => [{ type, status: "True", lastTransitionTime: "1970-01-01T00:00:10Z" }]

describe("decideJob", () => {
  const cases: ReadonlyArray<readonly [promise: string, seen: Partial<JobSeen>, now: number, expected: object]> = [
    ["a new job gets its pod", {}, 0, { create: [pod(0)], remove: [] }],
    ["a job whose pod runs is left alone", { attempts: [attempt(0, "Running")] }, 0, { create: [], remove: [] }],
    ["a pod that is on its way out is waited for", { attempts: [attempt(0, "Running", { deleting: true })] }, 0, { create: [] }],
    ["a failed pod is followed by another, after a pause", { attempts: [failed(0, 5_000)] }, 5_400, { create: [], again: 600 }],
    ["and then under another name", { attempts: [failed(0, 5_000)] }, 6_000, { create: [pod(1)] }],
    ["past its limit the job is given up", { attempts: [failed(0, 1), failed(1, 2)] }, 99_000, { create: [], remove: [] }],
    ["a disrupted pod that the policy ignores does not count", { backoffLimit: 0, attempts: [failed(0, 1, { ignored: true })] }, 99_000, { create: [pod(1)] }],
    [
      "its deadline ends a job that runs",
      { activeDeadline: 10_000, startedAt: 0, attempts: [attempt(0, "Running")] },
      10_000,
      { create: [], remove: [pod(0)] }
    ],
    [
      "before its deadline it is only looked at again",
      { activeDeadline: 10_000, startedAt: 0, attempts: [attempt(0, "Running")] },
      4_000,
      { remove: [], again: 6_000 }
    ],
    ["a suspended job has no pods", { suspended: true, attempts: [attempt(0, "Running")] }, 0, { create: [], remove: [pod(0)] }],
    ["a finished job never changes", { conditions: done("Failed") }, 99_000, { create: [], remove: [], expire: false }],
    ["a finished job stays for its time to live", { ttl: 5_000, conditions: done("Complete") }, 12_000, { expire: false, again: 3_000 }],
    ["and then goes", { ttl: 5_000, conditions: done("Complete") }, 15_000, { expire: true }]
  ]
  for (const [promise, observedJob, now, expected] of cases) it(promise, () => assert.deepInclude(decideJob({ ...job, ...observedJob }, now), expected))

  const conditions = (observedJob: Partial<JobSeen>, now: number) =>
    decideJob({ ...job, ...observedJob }, now).status?.conditions.map(({ type, reason }) => `${type}: ${reason}`)
  it("one success completes the job, at the time when the pod ended", () => {
    const observedJob = { attempts: [failed(0, 1), attempt(1, "Succeeded", { finishedAt: 7_000 })] }
    assert.deepStrictEqual(conditions(observedJob, 9_000), ["Complete: CompletionsReached"])
    assert.deepInclude(decideJob({ ...job, ...observedJob }, 9_000).status, { succeeded: 1, failed: 1, active: 0, completedAt: 7_000 })
  })
  it("a job has failed only when none of its pods runs", () => {
    const late = { activeDeadline: 10_000, startedAt: 0 }
    assert.deepStrictEqual(conditions({ ...late, attempts: [attempt(0, "Running")] }, 10_000), ["FailureTarget: DeadlineExceeded"])
    assert.deepStrictEqual(conditions({ ...late, attempts: [failed(0, 1)] }, 10_000), ["FailureTarget: DeadlineExceeded", "Failed: DeadlineExceeded"])
  })
  it("a failure that the policy calls final ends the job with the reason, whatever attempts remain", () => {
    const observedJob = { backoffLimit: 6, attempts: [failed(0, 1, { fatal: "exit code 3" })] }
    assert.deepStrictEqual(conditions(observedJob, 99_000), ["FailureTarget: PodFailurePolicy", "Failed: PodFailurePolicy"])
    assert.deepInclude(decideJob({ ...job, ...observedJob }, 99_000), { create: [] })
    const twoPods = { ...observedJob, parallelism: 2, completions: 2, attempts: [...observedJob.attempts, attempt(1, "Running")] }
    assert.deepStrictEqual(conditions(twoPods, 99_000), ["FailureTarget: PodFailurePolicy"])
    assert.deepInclude(decideJob({ ...job, ...twoPods }, 99_000), { create: [], remove: [pod(1)] })
  })
  it("restarts in place count against the limit", () => {
    assert.deepStrictEqual(conditions({ attempts: [attempt(0, "Running", { restarts: 2 })] }, 0), ["FailureTarget: BackoffLimitExceeded"])
  })
})
