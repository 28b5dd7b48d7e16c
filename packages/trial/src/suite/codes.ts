/** A code that no two requests share. */
export const codeOf = (index: number): string => {
  const letters = "BCDFGHJKLMNPQRSTVWXZ"
  const at = (place: number) => letters[(index * (place * 2 + 3) + place * 7 + index * index) % letters.length] ?? "B"
  return `${at(1)}${(index * 3 + 2) % 10}${at(2)}${at(3)}-${1_000 + ((index * 2_713 + 817) % 9_000)}`
}
