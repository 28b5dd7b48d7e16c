const rangeOf = (text: string): { readonly type: string; readonly quality: number } => {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase())
  const quality = parameters.map((parameter) => /^q=(\d(?:\.\d{0,3})?)$/.exec(parameter)?.[1]).find((quality) => quality !== undefined)
  return { type, quality: quality === undefined ? 1 : Math.min(1, Number(quality)) }
}

/**
 * Whether an `Accept` header (RFC 9110) prefers `media` to `usual`. It must name `media`, because a wildcard expresses
 * no preference, and must not give it less weight than `usual`.
 */
export const prefersOver =
  (media: string, usual: string) =>
  (accept: string | undefined): boolean => {
    if (accept === undefined || !accept.toLowerCase().includes(media)) return false
    const ranges = accept.split(",").map(rangeOf)
    const weight = (type: string) => ranges.find((range) => range.type === type)?.quality ?? 0
    return weight(media) > 0 && weight(media) >= weight(usual)
  }
