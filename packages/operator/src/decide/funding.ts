import { phaseTraits } from "@seatrial/domain"
import type { FundingProblem, Observation } from "../observation/Observation.ts"

interface FundingText {
  /** The reason of conditions and events. */
  readonly reason: string
  /** A sentence without its period. */
  readonly problem: string
  /** What an administrator does. */
  readonly remedy: string
  /** What a member of the organization does. */
  readonly publicRemedy: string
}

export const describeFunding = (organization: string, why: FundingProblem): FundingText => {
  switch (why) {
    case "balance":
      return {
        reason: "BalanceUsedUp",
        problem: `The prepaid balance of the organization ${organization} is used up`,
        remedy: `Record a purchase (seatrial admin purchases record --org ${organization} <micro-dollars>) or grant a credit.`,
        publicRemedy: "Ask an administrator to record a purchase or to grant a credit."
      }
    case "suspended":
      return {
        reason: "BillingSuspended",
        problem: `The billing of the organization ${organization} is suspended`,
        remedy: `Resume the billing (seatrial admin billing resume --org ${organization}).`,
        publicRemedy: "Ask an administrator to resume billing."
      }
    default:
      return {
        reason: "SpendLimitReached",
        problem: `The ${why === "day" ? "daily" : "monthly"} spend limit of the organization ${organization} is used up`,
        remedy: `Raise the limit (seatrial admin limits set --org ${organization} --${why} <micro-dollars>), or wait until the next ${why} begins (UTC).`,
        publicRemedy: `Ask an administrator to raise the limit, or wait until the next ${why} begins (UTC).`
      }
  }
}

/** The messages of a run that waits because its organization gets no GPUs; null if it may have some. */
export const waitsForFunds = ({ funding, run }: Pick<Observation, "funding" | "run">) => {
  if (funding === null) return null
  const { problem, publicRemedy, remedy } = describeFunding(run.orgSlug, funding.why)
  const message = (action: string) => `${problem}, so the deployment gets no GPU. ${action} The deployment continues within a minute after that.`
  return { message: message(remedy), publicMessage: message(publicRemedy) }
}

/** Whether the engine must release its GPUs because its organization could not pay for them for the grace period. */
export const isUnpaid = ({ funding }: Pick<Observation, "funding">, now: number): boolean =>
  funding !== null && funding.releaseAt !== null && now >= funding.releaseAt

/** The messages of a serving model without an engine because its organization cannot pay; null if it may have one. */
export const releasedUnpaid = (observation: Observation, now: number) => {
  const { funding, run } = observation
  if (funding === null || !isUnpaid(observation, now)) return null
  const { problem, publicRemedy, remedy } = describeFunding(run.orgSlug, funding.why)
  const after =
    run.revision?.settings.hold_seconds === undefined ? "The engine starts within a minute after that." : "The next request after that starts the engine."
  const message = (action: string) => `${problem}, so the model has no engine. The model stays activated. ${action} ${after}`
  return { message: message(remedy), publicMessage: message(publicRemedy) }
}

/** The reason for which the run has no GPUs, if that is its organization's funding; otherwise null. */
export const fundingReason = (observation: Observation, now: number): string | null => {
  const { funding, run } = observation
  if (funding === null || !(phaseTraits[run.phase].awaitsGpus || (run.phase === "activated" && isUnpaid(observation, now)))) return null
  return describeFunding(run.orgSlug, funding.why).reason
}
