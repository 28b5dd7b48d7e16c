import { weightCommits } from "@seatrial/domain"
import { manifestSha256 } from "@seatrial/hub"
import type { RunRevision } from "@seatrial/store"

/** The folder of a commit's files, relative to the root of a volume of weights. */
const subPathOf = ({ commit, repo }: { readonly repo: string; readonly commit: string }): string => `${repo}/${commit}`

/** Where a commit's files lie, under the place where the claim is mounted. */
const folderOf = (mount: string, commit: { readonly repo: string; readonly commit: string }): string => `${mount}/${subPathOf(commit)}`

/** The mounts of the container that runs the engine: read-only, and of each commit that it serves only that folder. The volume may hold other organizations' weights. */
export const weightsMounts = (mount: string, { facts }: RunRevision) =>
  weightCommits(facts).map((commit) => ({ name: "weights", mountPath: folderOf(mount, commit), subPath: subPathOf(commit), readOnly: true }))

/** Where the files of the model lie, of an adapter those of its base. */
export const weightsPath = (mount: string, { facts }: RunRevision): string => folderOf(mount, weightCommits(facts)[0])

/** Where the files of the adapter lie. */
export const adapterPath = (mount: string, { facts }: RunRevision): string => folderOf(mount, facts)

/** Bytes of all files that an engine is started with. */
export const weightsSize = ({ facts }: Pick<RunRevision, "facts">): number =>
  weightCommits(facts).reduce((sum, { files }) => files.reduce((all, { size }) => all + size, sum), 0)

/** The hash of the list of all files that an engine is started with: that of a commit's own, or of both commits' under their folders. */
export const weightsManifest = ({ facts }: Pick<RunRevision, "facts">): string => {
  const commits = weightCommits(facts)
  if (commits.length === 1) return manifestSha256(facts.files)
  return manifestSha256(commits.flatMap((each) => each.files.map((file) => ({ ...file, path: folderOf("", each).slice(1).concat("/", file.path) }))))
}

/** What the commands that bring files are told of them; `mount` is where they are to appear, null where the command finds that by itself. */
export const weightsWords = ({ facts }: RunRevision, mount: string | null): ReadonlyArray<string> =>
  weightCommits(facts).flatMap((each, at) => {
    const of = at === 0 ? "" : "adapter-"
    return [
      `--${of}repo=${each.repo}`,
      `--${of}commit=${each.commit}`,
      ...(mount === null ? [] : [`--${of}directory=${folderOf(mount, each)}`]),
      `--${of}manifest=${manifestSha256(each.files)}`
    ]
  })
