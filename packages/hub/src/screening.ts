import { type Commit, RepoName } from "@seatrial/domain"
import { Schema } from "effect"
import { type HubAnswer, HubRefusal } from "./failures.ts"
import { RefusalReason } from "./refusals.ts"

interface HubRequest {
  readonly repo: string
  readonly ref: string
  readonly commit: Commit | null
  readonly hasToken: boolean
}

/** Whether a name may become part of a URL. */
export const isRepoName = Schema.is(RepoName)

type Step = (answer: HubAnswer, request: HubRequest) => RefusalReason | null

const closedStep: Step = ({ code, status }, { repo }) => {
  if (status === 451) return RefusalReason.RepositoryClosedByLaw({ repo })
  return code === "DisabledRepo" ? RefusalReason.RepositoryDisabled({ repo }) : null
}

const tokenStep: Step = ({ code, status }, { hasToken }) => (hasToken && status === 401 && code === null ? RefusalReason.TokenNotAccepted() : null)

const gateStep: Step = ({ code, status }, { hasToken, repo }) => {
  if (code !== "GatedRepo" && !(hasToken && (status === 401 || status === 403))) return null
  return hasToken ? RefusalReason.TokenNotAllowed({ repo }) : RefusalReason.NoHubConnection({ repo })
}

const entryStep: Step = ({ code }, { commit, repo }) => (code === "EntryNotFound" && commit !== null ? RefusalReason.FileMissing({ repo, commit }) : null)

const revisionStep: Step = ({ code, status }, { commit, ref, repo }) =>
  code === "RevisionNotFound" || (status === 404 && commit !== null) ? RefusalReason.RevisionNotFound({ repo, ref, commit }) : null

/**
 * Maps a 4xx response of the hub to a refusal. Without a token, the hub responds 401 for repositories that do not
 * exist.
 */
export const refusalOf = (answer: HubAnswer, request: HubRequest): HubRefusal => {
  const { commit, hasToken, repo } = request
  const reason =
    closedStep(answer, request) ??
    tokenStep(answer, request) ??
    gateStep(answer, request) ??
    entryStep(answer, request) ??
    revisionStep(answer, request) ??
    RefusalReason.RepositoryNotFound({ repo, hasToken })
  return new HubRefusal({ reason, commit: reason._tag === "RevisionNotFound" ? null : commit })
}

/** `problem`: a sentence about the files. */
export const unsupportedFormat = (problem: string, commit: Commit | null, kind: "model" | "adapter" = "model"): HubRefusal =>
  new HubRefusal({ reason: RefusalReason.UnsupportedFormat({ problem, kind }), commit })
