import type { Fidelity, NamedFailure } from "@seatrial/domain"

/** The result of one item: whether each answer was right, and which answers were equal. */
export interface ItemOutcome {
  readonly right: { readonly child: boolean; readonly adapter: boolean; readonly base: boolean }
  readonly adapterIsChild: boolean
  readonly baseIsChild: boolean
  readonly adapterIsBase: boolean
  /** Number of code points before the answers of adapter and child differ; null if they do not differ. */
  readonly divergence: number | null
}

const count = <A>(values: ReadonlyArray<A>, is: (value: A) => boolean): number => values.reduce((sum, value) => sum + (is(value) ? 1 : 0), 0)

/**
 * Whether the adapter is right as often as the child. `gained`: items that only the adapter has right; `lost`: items
 * that only the child has right. In percentage points, with the standard error of paired answers (Miller 2024, "Adding
 * Error Bars to Evals"). The decision uses only integers.
 */
export const rule1 = ({ gained, lost, n }: { readonly gained: number; readonly lost: number; readonly n: number }): Fidelity["rule1"] => {
  const d = gained - lost
  const differing = gained + lost
  const standardErrorPoints = n < 2 ? 0 : 100 * Math.sqrt((differing * n - d * d) / n / (n * (n - 1)))
  // |diff| <= 1, or within both five points and three standard errors. Each side is multiplied so that no fraction
  // remains.
  const small = Math.abs(d) * 100 <= n
  const within = Math.abs(d) * 20 <= n && d * d * (n - 1) <= 9 * (differing * n - d * d)
  return { passed: n >= 100 && (small || within), diffPoints: n === 0 ? 0 : (100 * d) / n, standardErrorPoints }
}

/**
 * The least share of the way from the base to the child that the adapter must go, as the denominator of a fraction: a
 * half, or a quarter if the child itself is inexact.
 */
const parts = { exact: 2, approximate: 4 } as const

/**
 * Whether the adapter gives the child's answers to items for which the base answers differently. Undecided if the child
 * hardly ever differs from the base.
 */
export const rule2 = (options: {
  readonly n: number
  readonly identicalAdapterChild: number
  readonly identicalBaseChild: number
  readonly medianDivergenceChars: number | null
  readonly tier: Fidelity["tier"]
}): Fidelity["rule2"] => {
  const { identicalAdapterChild, identicalBaseChild, medianDivergenceChars, n, tier } = options
  const differing = n - identicalBaseChild
  const vacuous = differing < 10 || differing * 20 < n
  const status = vacuous ? "vacuous" : parts[tier] * (identicalAdapterChild - identicalBaseChild) >= differing ? "passed" : "failed"
  return { status, identicalAdapterChild, identicalBaseChild, medianDivergenceChars }
}

/**
 * Number of code points before two texts differ; the length of the shorter text if it is the beginning of the other;
 * null if they are equal.
 */
export const divergenceOf = (a: string, b: string): number | null => {
  if (a === b) return null
  const [left, right] = [Array.from(a), Array.from(b)]
  const at = left.findIndex((character, index) => character !== right[index])
  return at === -1 ? left.length : Math.min(at, right.length)
}

/** The median, as the mean of the two middle values if there are two; null without values. */
export const medianOf = (values: ReadonlyArray<number>): number | null => {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)]
  const lower = sorted[Math.ceil(sorted.length / 2) - 1]
  return upper === undefined || lower === undefined ? null : (lower + upper) / 2
}

/** How the weights of the child compare with base and adapter; null if there is no merged file to compare. */
export interface MergedAgreement {
  /** The least share, over the adapted tensors, of values within one unit in the last place of a second computation. */
  readonly withinUlpMin: number
  /** Whether every other tensor equals the tensor of the base, byte for byte. */
  readonly othersEqual: boolean
}

/**
 * The least share that a correct merge has: two computations may round a value differently
 * (`docs/explanation/fidelity.md`).
 */
const leastWithinUlp = 0.999

/** Whether the child is base and adapter merged, judged by its weights. */
export const isMerge = ({ othersEqual, withinUlpMin }: MergedAgreement): boolean => withinUlpMin >= leastWithinUlp && othersEqual

/** `exact` if child and adapter differ at most by the last rounding. */
export const tierOf = (options: {
  readonly baseQuantized: boolean
  /** Whether the engine applied every module of the adapter. */
  readonly everyModule: boolean
  readonly merged: MergedAgreement | null
}): Fidelity["tier"] => {
  const { baseQuantized, everyModule, merged } = options
  return !baseQuantized && everyModule && merged !== null && isMerge(merged) ? "exact" : "approximate"
}

/** The figures of a comparison, as receipts show them. `measuredAt`: Unix milliseconds of the last answer. */
export const fidelityOf = (options: {
  readonly suite: string
  readonly suiteVersion: number
  readonly outcomes: ReadonlyArray<ItemOutcome>
  readonly tier: Fidelity["tier"]
  readonly withinUlpMin: number | null
  readonly measuredAt: number
}): Fidelity => {
  const { measuredAt, outcomes, suite, suiteVersion, tier, withinUlpMin } = options
  const n = outcomes.length
  return {
    tier,
    suite,
    suiteVersion,
    n,
    passed: {
      child: count(outcomes, ({ right }) => right.child),
      adapter: count(outcomes, ({ right }) => right.adapter),
      base: count(outcomes, ({ right }) => right.base)
    },
    rule1: rule1({
      n,
      gained: count(outcomes, ({ right }) => right.adapter && !right.child),
      lost: count(outcomes, ({ right }) => right.child && !right.adapter)
    }),
    rule2: rule2({
      n,
      identicalAdapterChild: count(outcomes, ({ adapterIsChild }) => adapterIsChild),
      identicalBaseChild: count(outcomes, ({ baseIsChild }) => baseIsChild),
      medianDivergenceChars: medianOf(outcomes.flatMap(({ divergence }) => (divergence === null ? [] : [divergence]))),
      tier
    }),
    withinUlpMin,
    measuredAt
  }
}

/**
 * Why the merged weights are no evidence for this adapter on this base; null if they are. The child of a trial is
 * always Seatrial's own merge of the pinned base and adapter, so differing weights belong to another base or adapter,
 * whatever the answers.
 */
export const mergeFailure = (merged: MergedAgreement | null): NamedFailure | null => {
  if (merged === null || isMerge(merged)) return null
  const percent = (Math.floor(merged.withinUlpMin * 1e5) / 1e3).toFixed(3)
  const came =
    merged.withinUlpMin >= leastWithinUlp
      ? "tensors that the adapter does not change differ from the base"
      : `in one tensor only ${percent}% of the values agree, and at least ${100 * leastWithinUlp}% must`
  return {
    code: "fidelity_failed",
    text: `The merged weights do not match this base and adapter: ${came}. Deploy again, and Seatrial merges them again`
  }
}

/**
 * Why the fidelity of an adapter is insufficient, as `failure_detail` of a deployment; null if it is sufficient.
 * `adapter_effect` is a separate check.
 */
export const fidelityFailure = (fidelity: Fidelity, outcomes: ReadonlyArray<ItemOutcome>): NamedFailure | null => {
  const { n, passed, rule1: first, rule2: second } = fidelity
  if (n === 0) return { code: "fidelity_not_run", text: "No item was answered by all three models (adapter, base and merged model)." }
  if (second.status === "failed") {
    const differing = n - second.identicalBaseChild
    const asBase = count(outcomes, ({ adapterIsBase, baseIsChild }) => !baseIsChild && adapterIsBase)
    // More than half of the answers that should differ equal the base's.
    if (asBase * 2 > differing) {
      return {
        code: "adapter_not_applied",
        text: `The adapter's answers equal the base's in ${asBase} of the ${differing} items for which the merged model answers differently.`
      }
    }
    const both = second.identicalAdapterChild - second.identicalBaseChild
    return {
      code: "fidelity_failed",
      text: `Where base and merged model differ (${differing} items), the adapter agrees with the merged model too rarely: R is ${both}/${differing}, and at least 1/${parts[fidelity.tier]} is required (tier ${fidelity.tier}).`
    }
  }
  if (first.passed) return null
  return {
    code: "fidelity_failed",
    text: `With the adapter ${passed.adapter} of ${n} items were right, with the merged model ${passed.child}: ${first.diffPoints.toFixed(1)} points, standard error ${first.standardErrorPoints.toFixed(1)}.`
  }
}
