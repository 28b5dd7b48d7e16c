/** A requirement on a label or a field of a node, as in a node selector term. */
interface NodeRequirement {
  readonly key: string
  /** `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`. */
  readonly operator: string
  readonly values?: ReadonlyArray<string>
}

/** Whether labels or fields meet the requirement, by the rules of kube-scheduler. No node meets an unknown operator. */
export const meetsRequirement = ({ key, operator, values = [] }: NodeRequirement, entries: Readonly<Record<string, string>>): boolean => {
  const value = entries[key]
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value)
    case "NotIn":
      return value === undefined || !values.includes(value)
    case "Exists":
      return value !== undefined
    case "DoesNotExist":
      return value === undefined
    case "Gt":
      return value !== undefined && Number(value) > Number(values[0])
    case "Lt":
      return value !== undefined && Number(value) < Number(values[0])
    default:
      return false
  }
}
