/** Pattern of a key of a label or annotation. */
export const labelKey = "^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
/** Pattern of the value of a label. */
export const labelValue = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"

const [keyPattern, valuePattern] = [new RegExp(labelKey, "u"), new RegExp(labelValue, "u")]

export const isLabelKey = (key: string): boolean => keyPattern.test(key)
export const isLabelValue = (value: string): boolean => valuePattern.test(value)

/** Whether each entry is a valid label. */
export const areLabels = (entries: Readonly<Record<string, string>>): boolean =>
  Object.entries(entries).every(([key, value]) => isLabelKey(key) && isLabelValue(value))
