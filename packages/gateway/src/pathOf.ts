/** The path of a request's address; of one that is given whole, as proxies get it, too. */
export const pathOf = (url: string | undefined): string => {
  const [target = "/"] = (url ?? "/").split("?", 1)
  return target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/]*/i, "")
}
