const rangeOf = (text: string): { readonly type: string; readonly quality: number } => {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase())
  const given = parameters.map((parameter) => /^q=(\d(?:\.\d{0,3})?)$/.exec(parameter)?.[1]).find((quality) => quality !== undefined)
  return { type, quality: given === undefined ? 1 : Math.min(1, Number(given)) }
}

/**
 * Whether a header `Accept` (RFC 9110) wants `media` rather than `usual`: it has to name it, since a wildcard asks for nothing in particular, and not with less weight
 * than the other where it names both.
 */
export const prefersOver =
  (media: string, usual: string) =>
  (accept: string | undefined): boolean => {
    if (accept === undefined || !accept.toLowerCase().includes(media)) return false
    const ranges = accept.split(",").map(rangeOf)
    const weight = (type: string) => ranges.find((range) => range.type === type)?.quality ?? 0
    return weight(media) > 0 && weight(media) >= weight(usual)
  }
