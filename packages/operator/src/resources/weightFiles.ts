import { weightCommits } from "@seatrial/domain"
import { manifestSha256 } from "@seatrial/hub"
import type { RunRevision } from "@seatrial/store"

type WeightsCommit = ReturnType<typeof weightCommits>[0]

/** The folder of a commit's files, relative to the root of a volume of weights. */
const subPathOf = ({ commit, repo }: { readonly repo: string; readonly commit: string }): string => `${repo}/${commit}`

/** The path of a commit's files below the mount. */
const folderOf = (mount: string, commit: { readonly repo: string; readonly commit: string }): string => `${mount}/${subPathOf(commit)}`

/** The mount of a commit's folder, read-only. */
const mountOf = (mount: string, commit: WeightsCommit) => ({ name: "weights", mountPath: folderOf(mount, commit), subPath: subPathOf(commit), readOnly: true })

/**
 * The mounts of the containers that check, serve or merge the weights: read-only, and only the folders of their
 * commits. The volume may hold other organizations' weights.
 */
export const weightsMounts = (mount: string, { facts }: RunRevision) => weightCommits(facts).map((commit) => mountOf(mount, commit))

/** The same for the model alone; for an adapter, for its base alone. */
export const modelMount = (mount: string, { facts }: RunRevision) => mountOf(mount, weightCommits(facts)[0])

/** The path of the model's files; for an adapter, of its base's files. */
export const weightsPath = (mount: string, { facts }: RunRevision): string => folderOf(mount, weightCommits(facts)[0])

/** The path of the adapter's files. */
export const adapterPath = (mount: string, { facts }: RunRevision): string => folderOf(mount, facts)

/** Total bytes of the files that the engine loads. */
export const weightsSize = ({ facts }: Pick<RunRevision, "facts">): number =>
  weightCommits(facts).reduce((sum, { files }) => files.reduce((all, { size }) => all + size, sum), 0)

/** Hash of the list of files that the engine loads: of one commit, or of both commits with their folders. */
export const weightsManifest = ({ facts }: Pick<RunRevision, "facts">): string => {
  const commits = weightCommits(facts)
  if (commits.length === 1) return manifestSha256(facts.files)
  return manifestSha256(commits.flatMap((each) => each.files.map((file) => ({ ...file, path: folderOf("", each).slice(1).concat("/", file.path) }))))
}

const argumentsOf = (commit: WeightsCommit, of: "" | "adapter-", mount: string | null): ReadonlyArray<string> => [
  `--${of}repo=${commit.repo}`,
  `--${of}commit=${commit.commit}`,
  ...(mount === null ? [] : [`--${of}directory=${folderOf(mount, commit)}`]),
  `--${of}manifest=${manifestSha256(commit.files)}`
]

/**
 * The arguments of the commands that download or copy files. `mount` is the target; null if the command has its own.
 */
export const weightsArguments = ({ facts }: RunRevision, mount: string | null): ReadonlyArray<string> =>
  weightCommits(facts).flatMap((each, at) => argumentsOf(each, at === 0 ? "" : "adapter-", mount))

/** The same for the model alone; for an adapter, for its base alone. */
export const modelArguments = ({ facts }: RunRevision, mount: string): ReadonlyArray<string> => argumentsOf(weightCommits(facts)[0], "", mount)
