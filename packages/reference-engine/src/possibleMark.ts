/** The length of the longest end of `text` that is the beginning of `mark`. */
export const possibleMark = (text: string, mark: string): number => {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--) if (text.endsWith(mark.slice(0, length))) return length
  return 0
}
