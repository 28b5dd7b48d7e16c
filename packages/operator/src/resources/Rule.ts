/**
 * A constraint that the types of a definition cannot express. `rule` is CEL for the API server. `holds` repeats it for
 * the operator, for clusters that do not evaluate CEL. A rule about a change has no `holds`: only the API server has
 * the old object.
 */
export interface Rule<A> {
  /** The path of the schema from the root, with dots; `[]` for the items of a list. */
  readonly path: string
  readonly rule: string
  readonly message: string
  readonly holds?: (object: A) => boolean
}

/** The message of the first rule that the object breaks; null if it breaks none. */
export const brokenRule = <A>(rules: ReadonlyArray<Rule<A>>, object: A): string | null => rules.find(({ holds }) => holds?.(object) === false)?.message ?? null

/** The same as a sentence. */
export const brokenSentence = <A>(rules: ReadonlyArray<Rule<A>>, object: A): string | null => {
  const broken = brokenRule(rules, object)
  return broken === null ? null : `${broken}.`
}
