// Checks of a page from within, after WCAG 2.2; sends what it finds to the page around it.
(() => {
  const findings = [];
  const report = (rule, what) => findings.push(`${rule}: ${what}`);
  const name = (element) => `<${element.tagName.toLowerCase()}> "${(element.textContent || "").trim().slice(0, 40)}"`;
  const all = (selector) => [...document.querySelectorAll(selector)];

  if (!document.documentElement.lang) report("3.1.1 language", "no lang");
  if (!document.title.trim()) report("2.4.2 title", "no title");
  if (all("main").length !== 1) report("1.3.1 landmarks", `${all("main").length} main elements`);
  if (all("h1").length !== 1) report("1.3.1 headings", `${all("h1").length} h1 elements`);
  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) report("1.3.1 headings", `h${next} after h${level}: ${name(heading)}`);
    if (!heading.textContent.trim()) report("2.4.6 headings", `empty ${name(heading)}`);
    level = next;
  }
  for (const image of all("img")) if (!image.alt.trim()) report("1.1.1 text alternative", image.src);
  for (const svg of all("svg")) {
    if (svg.closest("[aria-hidden=true]") || svg.closest("[role=img][aria-label]")) continue;
    if (!svg.getAttribute("aria-label")) report("1.1.1 text alternative", "svg without a label");
  }
  for (const element of all("[role=img]")) if (!element.getAttribute("aria-label")) report("1.1.1 text alternative", name(element));
  for (const link of all("a[href]")) if (!link.textContent.trim()) report("2.4.4 link purpose", link.href);
  const ids = all("[id]").map((element) => element.id);
  for (const id of ids.filter((id, index) => ids.indexOf(id) !== index)) report("4.1.1 ids", `twice: ${id}`);
  for (const element of all("[aria-labelledby]")) {
    for (const id of element.getAttribute("aria-labelledby").split(" ")) {
      if (!document.getElementById(id)) report("1.3.1 labels", `no element ${id}`);
    }
  }
  for (const table of all("table")) {
    if (!table.caption || !table.caption.textContent.trim()) report("1.3.1 tables", `no caption: ${name(table)}`);
    for (const header of table.querySelectorAll("th")) if (!header.scope) report("1.3.1 tables", `no scope: ${name(header)}`);
  }
  for (const element of all("body *")) {
    const style = getComputedStyle(element);
    const scrolls = ["auto", "scroll"].includes(style.overflowX) && element.scrollWidth > element.clientWidth;
    if (scrolls && element.tabIndex < 0) report("2.1.1 keyboard", `cannot be scrolled: ${name(element)}`);
    if (scrolls && !element.getAttribute("aria-label")) report("4.1.2 name", `a scrolled region without a name: ${name(element)}`);
  }
  const overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (overflow > 0) report("1.4.10 reflow", `the page is ${overflow} px wider than the window`);

  const colour = (text) => {
    const parts = text.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found.alpha === 1) return found.rgb;
      if (found.alpha > 0) report("1.4.3 contrast", `a translucent background is not understood: ${name(at)}`);
    }
    return [255, 255, 255];
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || element.closest("script, style")) continue;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ink = element.closest("svg") ? style.fill : style.color;
    const [a, b] = [luminance(colour(ink).rgb), luminance(background(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) report("1.4.3 contrast", `${ratio.toFixed(2)} of ${name(element)}`);
  }
  parent.postMessage({ texts: document.body.innerText.length, width: innerWidth, findings }, "*");
})();
