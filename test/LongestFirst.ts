import { existsSync } from "node:fs"
import { join, relative } from "node:path"
import { BaseSequencer, type TestSpecification } from "vitest/node"

const root = join(import.meta.dirname, "..")

/** Seconds that the longest files take on two quiet cores. */
const seconds: ReadonlyMap<string, number> = new Map([
  ["test/cluster/tenants.test.ts", 300],
  ["test/cluster/permissions.test.ts", 300],
  ["test/cluster/applied.test.ts", 220],
  ["test/cluster/faults.test.ts", 260],
  ["test/cluster/fleet.test.ts", 320],
  ["test/cluster/helm.test.ts", 200],
  ["test/cluster/rollout.test.ts", 180],
  ["test/cluster/queue.test.ts", 120],
  ["test/cluster/image.test.ts", 100],
  ["test/cluster/outage.test.ts", 90],
  ["test/cluster/chart.test.ts", 70],
  ["test/cluster/definitions.test.ts", 70],
  ["test/cluster/scale.test.ts", 110],
  ["test/cluster/serve.test.ts", 60],
  ["test/cluster/edits.test.ts", 60],
  ["test/e2e/long/adapter.test.ts", 260],
  ["test/e2e/long/autoscaling.test.ts", 200],
  ["test/e2e/long/thinking.test.ts", 170],
  ["test/e2e/long/reference.test.ts", 170],
  ["test/e2e/long/adapterFidelity.test.ts", 130],
  ["test/e2e/long/rollOut.test.ts", 100],
  ["test/e2e/long/demo.test.ts", 90],
  ["test/e2e/long/modelAdmin.test.ts", 60],
  ["packages/cli/test/long/startedPrograms.test.ts", 55],
  ["test/e2e/long/restart.test.ts", 50],
  ["test/e2e/long/nodeCopies.test.ts", 45],
  ["test/e2e/long/hostClasses.test.ts", 45],
  ["test/e2e/long/failures.test.ts", 40],
  ["test/e2e/long/alteredWeights.test.ts", 80],
  ["test/e2e/long/engineStandIns.test.ts", 70],
  ["test/e2e/long/besideServing.test.ts", 120],
  ["test/e2e/long/fidelity.test.ts", 60],
  ["packages/gateway/test/long/largeAnswers.test.ts", 60],
  ["test/contract/model.test.ts", 55],
  ["test/faults/everyWrite.test.ts", 230],
  ["test/faults/fleetFaults.test.ts", 260],
  ["test/faults/realEngine.test.ts", 180],
  ["test/faults/outages.test.ts", 100],
  ["test/faults/schedules.test.ts", 100],
  ["test/faults/twoOperators.test.ts", 85],
  ["test/faults/fleetRollOuts.test.ts", 60],
  ["test/faults/revert.test.ts", 45],
  ["test/gateway/loss/loss.test.ts", 75],
  ["test/gateway/conformance.test.ts", 60],
  ["test/attacks/costlyBodies.test.ts", 52],
  ["test/attacks/unknownModels.test.ts", 36],
  ["test/attacks/tinyChunks.test.ts", 35],
  ["test/attacks/slowHeaders.test.ts", 34],
  ["test/attacks/slowUploads.test.ts", 32]
])
/** Of any other file. */
const secondsOfOthers = 18

for (const path of seconds.keys()) if (!existsSync(join(root, path))) throw new Error(`test/LongestFirst.ts names ${path}, which is not there`)

const pathOf = ({ moduleId }: TestSpecification) => relative(root, moduleId)
const secondsOf = (path: string) => seconds.get(path) ?? secondsOfOthers

interface Part {
  readonly paths: ReadonlyArray<string>
  readonly seconds: number
}

/** Deals files to this many parts of about the same length. Each file is in one of them. */
export const dealt = (paths: ReadonlyArray<string>, count: number): ReadonlyArray<Part> => {
  const empty: ReadonlyArray<Part> = Array.from({ length: count }, () => ({ paths: [], seconds: 0 }))
  const longestFirst = paths.toSorted().sort((one, other) => secondsOf(other) - secondsOf(one))
  return longestFirst.reduce((parts, path) => {
    const shortest = parts.reduce((least, part) => (part.seconds < least.seconds ? part : least))
    return parts.map((part) => (part === shortest ? { paths: [...part.paths, path], seconds: part.seconds + secondsOf(path) } : part))
  }, empty)
}

/** Starts the longest files first, so that all workers end together, and deals the files of `--shard` so that each part takes as long as the others. */
export default class LongestFirst extends BaseSequencer {
  override async shard(files: Array<TestSpecification>) {
    const { count, index } = this.ctx.config.shard ?? { count: 1, index: 1 }
    const part = dealt(files.map(pathOf), count)[index - 1]
    return files.filter((file) => part?.paths.includes(pathOf(file)))
  }

  override async sort(files: Array<TestSpecification>) {
    return (await super.sort(files)).sort((one, other) => secondsOf(pathOf(other)) - secondsOf(pathOf(one)))
  }
}
