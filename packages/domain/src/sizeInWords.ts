const units = ["B", "KiB", "MiB", "GiB"]

/**
 * Formats bytes for a message, in the largest unit with a value of at least one, up to GiB, the unit in which cards and
 * models are compared.
 */
export const sizeInWords = (bytes: number): string => {
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10))
  return `${step === 0 ? bytes : (bytes / 1024 ** step).toFixed(1)} ${units[step]}`
}
