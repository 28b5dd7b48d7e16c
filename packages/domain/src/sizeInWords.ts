const units = ["B", "KiB", "MiB", "GiB"]

/** Bytes for a message, in the largest unit of which there is at least one, GiB at most: cards and models are compared in it. */
export const sizeInWords = (bytes: number): string => {
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10))
  return `${step === 0 ? bytes : (bytes / 1024 ** step).toFixed(1)} ${units[step]}`
}
