import { type Commit, RepoName } from "@seatrial/domain"
import { Schema } from "effect"
import { type HubAnswer, HubRefusal } from "./failures.ts"

interface HubRequest {
  readonly repo: string
  readonly ref: string
  readonly commit: Commit | null
  readonly hasToken: boolean
}

// A hub connection belongs to a user. A run uses the connection of the user who created its API key.
const connectRemedy = "Accept the repository's terms on the hub, then connect a hub token that may read it to that user (`seatrial admin hub-connections set`)."
const grantRemedy = "Ask the repository's owner for access, or connect the token of an account that has it."

export const noHubConnection = ({ commit, repo }: HubRequest) =>
  new HubRefusal({
    code: "no_hub_connection",
    message: `The repository ${repo} is gated, and the user whose API key asks has no connection to the hub.`,
    remedy: connectRemedy,
    commit
  })

/** Whether a name may become part of a URL. */
export const isRepoName = Schema.is(RepoName)

export const unknownRepository = ({ commit, hasToken, repo }: Omit<HubRequest, "ref">) =>
  new HubRefusal({
    code: "repository_not_found",
    message: `The hub has no repository ${repo.slice(0, 200)}, or does not show it to the user whose API key asks.`,
    remedy: hasToken
      ? "Check the owner and the name; a private repository needs a token that may read it."
      : "Check the owner and the name; for a private repository connect a hub token that may read it to that user.",
    commit
  })

export const disabled = (repo: string, commit: Commit | null): HubRefusal =>
  new HubRefusal({
    code: "access_required",
    message: `The hub has disabled the repository ${repo}: nobody can read it.`,
    remedy: "Name another repository with this model.",
    commit
  })

const closedByLaw = (repo: string, commit: Commit | null): HubRefusal =>
  new HubRefusal({
    code: "access_required",
    message: `The hub may not show the repository ${repo} for legal reasons (status 451): nobody can read it there.`,
    remedy: "Name another repository with this model.",
    commit
  })

/** A text that looks like an abbreviated commit but is too short to search for. */
const shortCommit = /^[0-9a-f]{4,6}$/i
const beginningOfCommit = /^[0-9a-f]{7,39}$/i

type Step = (answer: HubAnswer, request: HubRequest) => HubRefusal | null

const accessRequired = (message: string, remedy: string, commit: Commit | null): HubRefusal =>
  new HubRefusal({ code: "access_required", message, remedy, commit })

const closedStep: Step = ({ code, status }, { commit, repo }) => {
  if (status === 451) return closedByLaw(repo, commit)
  return code === "DisabledRepo" ? disabled(repo, commit) : null
}

const tokenStep: Step = ({ code, status }, { commit, hasToken }) =>
  hasToken && status === 401 && code === null
    ? accessRequired(
        "The hub does not accept the hub token of the user whose API key asks: it was revoked, or has expired.",
        "Connect a new hub token to that user (`seatrial admin hub-connections set`).",
        commit
      )
    : null

const gateStep: Step = ({ code, status }, request) => {
  const { commit, hasToken, repo } = request
  if (code !== "GatedRepo" && !(hasToken && (status === 401 || status === 403))) return null
  return hasToken ? accessRequired(`The hub token of the user whose API key asks may not read ${repo}.`, grantRemedy, commit) : noHubConnection(request)
}

const entryStep: Step = ({ code }, { commit, repo }) =>
  code === "EntryNotFound" && commit !== null
    ? unsupportedFormat(`The model hub lists a file of ${repo} at commit ${commit} that it does not have there.`, commit)
    : null

const revisionRemedy = (ref: string): string => {
  if (shortCommit.test(ref)) return "Name a branch or tag that the repository has, or a commit by at least its first seven digits."
  return beginningOfCommit.test(ref)
    ? "Name the whole commit: a beginning is looked for among the newest 300 commits of main and the commits that branches and tags point to."
    : "Name a branch, tag or commit that the repository has, or leave ref out for its default branch."
}

const revisionStep: Step = ({ code, status }, { commit, ref, repo }) =>
  code === "RevisionNotFound" || (status === 404 && commit !== null)
    ? new HubRefusal({
        code: "revision_not_found",
        message: `The repository ${repo} has no branch, tag or commit ${commit ?? ref}.`,
        remedy: revisionRemedy(ref),
        commit: null
      })
    : null

/**
 * Maps a 4xx response of the hub to a refusal. Without a token, the hub responds 401 for repositories that do not
 * exist.
 */
export const refusalOf = (answer: HubAnswer, request: HubRequest): HubRefusal =>
  closedStep(answer, request) ??
  tokenStep(answer, request) ??
  gateStep(answer, request) ??
  entryStep(answer, request) ??
  revisionStep(answer, request) ??
  unknownRepository(request)

/** What to do about a repository that cannot be served in its current layout. */
const layoutRemedies = {
  model: "Name a repository or a revision with safetensors weights, a configuration and a tokenizer in the layout of Hugging Face Transformers.",
  adapter:
    "Name a repository or a revision with a LoRA adapter as PEFT saves it (adapter_config.json and adapter_model.safetensors) for a base on the hub, or one with the adapter merged into its base."
} as const

export const unsupportedFormat = (reason: string, commit: Commit | null, kind: keyof typeof layoutRemedies = "model"): HubRefusal =>
  new HubRefusal({ code: "unsupported_format", message: reason, remedy: layoutRemedies[kind], commit })

export const remoteCodeRequired = (file: string, commit: Commit): HubRefusal =>
  new HubRefusal({
    code: "remote_code_required",
    message: `${file} asks for Python from the repository (auto_map), which is never run.`,
    remedy: "Name a repository whose architecture and tokenizer the engines know by themselves, such as the same model converted to Transformers.",
    commit
  })

/**
 * The refusal if no request was left to read a processor's configuration and the repository has Python code for a
 * processor.
 */
export const unreadProcessorCode = (file: string, unread: string, commit: Commit): HubRefusal =>
  new HubRefusal({
    code: "remote_code_required",
    message: `The repository brings ${file.slice(0, 200)} for its processor, and ${unread} was not read; Python from a repository is never run.`,
    remedy: "Name a repository whose processor the engines know by themselves, such as the same model converted to Transformers.",
    commit
  })
