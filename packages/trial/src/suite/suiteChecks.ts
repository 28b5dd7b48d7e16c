import type { Fidelity } from "@seatrial/domain"
import { Effect } from "effect"
import { adapterEffect } from "../fidelity/adapterEffect.ts"
import { fidelityCheck } from "../fidelity/fidelityCheck.ts"
import { batchEqualsAlone, promptsApart } from "./batchChecks.ts"
import { seconds, type TrialCheck } from "./Check.ts"
import { cacheHitEqual } from "./cacheHitEqual.ts"
import { charactersIntact } from "./charactersIntact.ts"
import { configCoherent } from "./configCoherent.ts"
import { decodeMatchesPrefill, greedyIsTop } from "./decodingChecks.ts"
import { farLikelihood } from "./farLikelihood.ts"
import { greedyRepeats, type RepeatedSum, type Repeats } from "./fingerprints.ts"
import { finishReasons } from "./finishReasons.ts"
import { engineIdentity, filesMatchCommit, tensorsComplete } from "./identityChecks.ts"
import { imageInput } from "./imageInput.ts"
import { jsonMode, jsonSchema } from "./jsonChecks.ts"
import { goldenAnswers, needle, outputSane } from "./knowledgeChecks.ts"
import { kvPressure } from "./kvPressure.ts"
import { largeBatch } from "./largeBatch.ts"
import { abortFrees, stillAlive } from "./lifeChecks.ts"
import { textLikelihood } from "./likelihood.ts"
import { badRequests, contextEdge } from "./limitChecks.ts"
import { loadedTensors } from "./loadedTensors.ts"
import { longAnswer } from "./longAnswer.ts"
import { messagesCount, messagesPath } from "./messagesPath.ts"
import { messagesStop } from "./messagesStop.ts"
import { pathDraws } from "./pathDraws.ts"
import { pathEffort } from "./pathEffort.ts"
import { pathForms, textsEcho } from "./pathForms.ts"
import { pathImages } from "./pathImages.ts"
import { pathSalt } from "./pathSalt.ts"
import { pathTools } from "./pathTools.ts"
import { pathThinking, reasoningEffort, reasoningSeparate, thinkingToggle } from "./reasoningChecks.ts"
import { referenceAgrees } from "./referenceAgrees.ts"
import { reportedLogprobs } from "./reportedLogprobs.ts"
import { responsesLogprobs } from "./responsesLogprobs.ts"
import { responsesPath } from "./responsesPath.ts"
import { samplingDistribution } from "./samplingDistribution.ts"
import { samplingObeyed } from "./samplingObeyed.ts"
import { stopStrings } from "./stopStrings.ts"
import { streamEqualsWhole } from "./streamEqualsWhole.ts"
import { templateAgrees } from "./templateAgrees.ts"
import { tokenizerAgrees } from "./tokenizerAgrees.ts"
import { toolChoiceAuto, toolChoiceNamed, toolChoiceNone, toolChoiceRequired, toolParallel, toolRoundTrip, toolSingle, toolStrict } from "./toolChecks.ts"
import { usageExact } from "./usageExact.ts"

/** Results that checks pass to later checks and to the report. */
export interface SuiteState {
  repeats: Repeats | null
  likelihood: ReadonlyArray<ReadonlyArray<number>> | null
  fidelity: Fidelity | null
  loadedChecksum: string | null
}

/** Whether greedy answers repeat. The check passes its result to `keep`. */
const repeats = (keep: (result: Repeats) => void): TrialCheck => {
  const sum: RepeatedSum = { steady: 0, all: 0 }
  return {
    name: "greedy_repeats",
    class: "required",
    purpose: "Greedy answers repeat; those that also repeat under load become fingerprints",
    limitSeconds: seconds(90),
    run: (subject) =>
      Effect.map(greedyRepeats(subject, sum), (result) => {
        keep(result)
        return result.detail
      })
  }
}

/** Features of the chat route: structured output, tools, reasoning, images and log-probabilities. */
const chatFeatures: ReadonlyArray<TrialCheck> = [
  jsonMode,
  jsonSchema,
  toolChoiceAuto,
  toolChoiceRequired,
  toolChoiceNamed,
  toolChoiceNone,
  toolParallel,
  toolSingle,
  toolStrict,
  toolRoundTrip,
  reasoningSeparate,
  thinkingToggle,
  reasoningEffort,
  imageInput,
  ...reportedLogprobs
]

/** The other inference paths and their features. */
const otherPaths = (): ReadonlyArray<TrialCheck> => [
  responsesPath,
  messagesPath,
  messagesCount,
  messagesStop,
  ...pathSalt,
  ...pathDraws(),
  ...pathTools,
  responsesLogprobs,
  ...pathThinking,
  ...pathEffort,
  ...pathImages,
  ...pathForms,
  textsEcho
]

/**
 * All checks in the order of execution: fast and decisive checks first. `pressureSeconds`: the time limit of
 * `kv_pressure`, if other than the default.
 */
export const suiteChecks = (state: SuiteState, pressureSeconds?: number): ReadonlyArray<TrialCheck> => [
  filesMatchCommit,
  tensorsComplete,
  configCoherent,
  engineIdentity,
  loadedTensors((checksum) => {
    state.loadedChecksum = checksum
  }),
  tokenizerAgrees,
  templateAgrees,
  textLikelihood((likelihood) => {
    state.likelihood = likelihood
  }),
  referenceAgrees,
  adapterEffect,
  goldenAnswers,
  outputSane,
  usageExact,
  finishReasons,
  streamEqualsWhole,
  stopStrings,
  greedyIsTop,
  decodeMatchesPrefill,
  longAnswer,
  samplingObeyed,
  samplingDistribution(),
  repeats((result) => {
    state.repeats = result
  }),
  fidelityCheck((fidelity) => {
    state.fidelity = fidelity
  }),
  cacheHitEqual,
  promptsApart,
  batchEqualsAlone(),
  largeBatch,
  contextEdge,
  farLikelihood,
  needle,
  charactersIntact,
  ...chatFeatures,
  ...otherPaths(),
  kvPressure(pressureSeconds),
  abortFrees(),
  badRequests,
  stillAlive(() => state.repeats?.fingerprints ?? [])
]
