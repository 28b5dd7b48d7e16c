/** The nearest number with so many bits of fraction. Below 2 to the power `least`, all steps have the same size. */
export const toFloat8 = (value: number, fraction: number, least: number): number => {
  if (value === 0) return 0
  const step = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(value))), least) - fraction)
  return Math.round(value / step) * step
}
