//! The words around a time that say what it is: the tables of [`super::marks`].

use super::said::Part;

/// A deadline in the form of a denial.
#[rustfmt::skip]
pub(super) const NOT_LATER: &[&str] = &[
    "不晚于", "不迟于", "不得晚于", "不得迟于", "不能晚于", "不能迟于", "不要晚于", "不要迟于",
    "不超过", "不得超过", "别晚于", "别超过", "不要超过", "no later than", "not later than",
    "do not exceed",
];

/// What stands before the time by which something is due.
#[rustfmt::skip]
pub(super) const DEADLINE_BEFORE: &[&str] = &[
    "截止", "截至", "截止到", "截至到", "最晚", "最迟", "至迟", "最晚到", "赶在", "赶到", "务必在",
    "by", "before", "until", "till", "til", "due", "due on", "due by", "due at", "by the", "ddl",
    "deadline", "by around", "no later than", "expires", "expires on", "closes", "closes on", "ends",
    "ends on", "ends at", "close of", "截稿", "之前", "最后期限", "限期", "期限", "due date",
];

/// What stands behind the time by which something is due.
#[rustfmt::skip]
pub(super) const DEADLINE_BEHIND: &[&str] = &[
    "之前", "以前", "或之前", "及之前", "及以前", "前", "截止", "截至", "截稿", "止", "到期", "为止",
    "之内", "以内", "内", "ddl", "deadline", "due", "结束", "关闭", "下线", "封榜", "at the latest",
    "latest", "or earlier", "or before",
];

/// What makes 前 part of another word.
#[rustfmt::skip]
pub(super) const NO_BEFORE: &[&str] = &[
    "前往", "前台", "前端", "前面", "前提", "前后", "前排", "前线", "前辈", "前夕", "前者", "前任",
    "前一", "前几", "前两", "前三",
];

/// What takes place.
#[rustfmt::skip]
pub(super) const EVENTS: &[&str] = &[
    "开会", "会议", "例会", "班会", "大会", "晨会", "周会", "组会", "见面会", "会", "考试", "笔试",
    "面试", "复试", "考", "上课", "课", "讲座", "答辩", "聚餐", "聚会", "集合", "出发", "彩排", "排练",
    "比赛", "决赛", "初赛", "见面", "见", "碰头", "碰面", "举行", "举办", "召开", "开始", "开幕",
    "开场", "直播", "活动", "培训", "体检", "约", "吃饭", "火锅", "起飞", "发车", "到账", "开放",
    "开赛", "值班", "放假", "开学", "meeting", "meet", "call", "exam", "test", "interview", "class",
    "lecture", "lunch", "dinner", "breakfast", "party", "start", "starts", "begins", "standup", "sync",
    "appointment", "event", "session", "kick-off", "kickoff", "webinar", "seminar", "rehearsal", "demo",
    "review", "flight", "train", "presentation",
];

/// What is to be done.
#[rustfmt::skip]
pub(super) const DUTIES: &[&str] = &[
    "交", "提交", "上交", "完成", "做完", "写完", "弄完", "发我", "发给", "发到", "发出", "给我",
    "给你", "填", "报名", "报到", "缴", "还", "回复", "反馈", "汇总", "截", "搞定", "上报", "上传",
    "确认", "付款", "到期", "归还", "submit", "hand in", "send", "finish", "deliver", "return",
    "complete", "turn in", "pay", "reply", "respond", "upload", "file",
];

/// What denies the time behind it.
#[rustfmt::skip]
pub(super) const NEGATIONS: &[&str] = &[
    "不是", "并不是", "并非", "不在", "不用", "不必", "无需", "不需要", "不要", "别", "不再是",
    "不会是", "不会在", "不是说", "不用等到", "不要等到", "非", "不等到", "不能等到", "取消", "取消了",
    "不改到", "没说", "不再", "不定在", "没定在", "不安排", "instead of", "rather than", "cancel",
    "canceled", "cancelled", "except", "except on", "不存在", "除了",
];

/// What denies the time before it.
#[rustfmt::skip]
pub(super) const NEGATIONS_BEHIND: &[&str] = &[
    "不用交", "不必交", "无需", "不用提交", "不用", "不必", "不需要", "不交", "不开会", "不开了",
    "不上课", "不上", "不考", "不算", "不行", "不截止", "不是截止", "不再", "没课", "不收", "取消",
    "作废", "来不及", "不作数", "不举行", "不举办", "不去了", "is canceled", "is cancelled",
    "was cancelled", "was canceled", "cancelled", "canceled", "called off", "is off", "isn't", "is not",
    "doesn't work", "does not work", "won't work", "no longer",
];

/// What looks like a denial and is none.
#[rustfmt::skip]
pub(super) const NO_NEGATION_BEHIND: &[&str] = &[
    "不用担心", "没有取消", "没取消", "不取消", "不会取消", "并未取消", "not cancelled", "not canceled",
    "不用急", "不用谢", "不用客气", "不见不散", "不变", "不要忘", "不能迟", "不上班",
];

/// What stands before the time that replaces another.
#[rustfmt::skip]
pub(super) const CHANGES: &[&str] = &[
    "改到", "改到了", "改成", "改成了", "改为", "改至", "改在", "推迟到", "推迟到了", "推迟至", "延到",
    "延期到", "延期至", "延长到", "延长至", "延至", "延后到", "延后至", "提前到", "提前到了", "提前至",
    "调到", "调整到", "调整为", "调整至", "挪到", "挪到了", "挪至", "换到", "换成", "顺延到", "顺延至",
    "变更为", "变更到", "更改为", "更正为", "更新为", "应为", "应该是", "而是", "变成", "定到", "现定",
    "移到", "移至", "宽限到", "宽限至", "moved to", "moved it to", "move it to", "moving it to",
    "pushed to", "pushed back to", "push it to", "postponed to", "postponed until", "postponed till",
    "rescheduled to", "rescheduled for", "changed to", "shifted to", "delayed to", "delayed until",
    "brought forward to", "extended to", "extended until", "but", "but rather", "it's now", "is now",
    "now due", "now", "actually", "correction",
];

/// What stands before the time that held before.
#[rustfmt::skip]
pub(super) const FORMER: &[&str] = &[
    "原定", "原定于", "原本", "原来", "原来是", "之前定的", "原计划", "原先", "本来", "本来是",
    "本来定", "originally", "was", "used to be", "由", "moved from", "rescheduled from",
    "postponed from", "changed from", "pushed from",
];

/// Words with "not" before that deny no time: not until, don't forget.
#[rustfmt::skip]
pub(super) const NO_DENIAL: &[&str] = &[
    "forget", "miss", "late", "later", "worry", "hesitate", "only", "sure", "accepted", "exceed",
    "delay", "if", "whether", "or not", "why not",
];

/// What takes place, said before the time.
#[rustfmt::skip]
pub(super) const EVENTS_BEFORE: &[&str] = &[
    "开会时间", "会议时间", "考试时间", "面试时间", "上课时间", "活动时间", "集合时间", "开始时间",
    "出发时间", "讲座时间", "开会", "考试", "面试", "答辩", "聚餐", "集合", "出发", "见面", "meeting",
    "exam", "interview", "meet", "lunch", "dinner", "call", "party", "class", "appointment", "starts",
    "begins",
];

/// What says that after the time nothing is taken any more.
#[rustfmt::skip]
pub(super) const CLOSED: &[&str] = &[
    "不再", "不收", "不予", "不接", "无法", "无效", "关闭", "逾期", "作废", "拒收", "截止", "不能",
    "不可",
];

/// What has another time now, before "from" and "to".
#[rustfmt::skip]
pub(super) const MOVED: &[&str] = &[
    "moved", "rescheduled", "postponed", "pushed", "changed", "shifted", "delayed", "extended", "switched", "brought forward",
];

/// A beginning in the form of a denial.
pub(super) const NOT_UNTIL: &[&str] = &["not until", "not before", "not till"];

/// What stands before the time at which something begins.
#[rustfmt::skip]
pub(super) const STARTS: &[&str] = &[
    "从", "自", "自从", "from", "after", "since", "starting", "starting from", "starting on", "starting at", "beginning", "as of",
    "start", "starts", "start at", "starts at", "start on", "starts on", "begins", "begins at", "begins on",
];

/// What takes place at one part of the day alone.
#[rustfmt::skip]
pub(super) const PARTED: &[(&[&str], Part)] = &[
    (&["起床", "早餐", "早饭", "早操", "早读", "早自习", "晨跑", "晨读", "晨会", "升旗", "breakfast"], Part::Morning),
    (&["午饭", "午餐", "lunch"], Part::Noon),
    (&["晚饭", "晚餐", "晚自习", "晚会", "晚课", "晚宴", "夜宵", "宵夜", "夜跑", "dinner", "supper"], Part::Evening),
];

/// The words, in order, that an English wording of time can begin with; any other is passed over at once.
#[rustfmt::skip]
pub(super) const OPENING_WORDS: &[&str] = &[
    "a", "after", "afternoon", "an", "another", "apr", "april", "as", "asap", "ash", "at", "aug",
    "august", "beginning", "between", "biweekly", "black", "boxing", "chinese", "christmas", "close",
    "cob", "coming", "couple", "current", "daily", "day", "days", "dec", "december", "dragon", "each",
    "earlier", "early", "easter", "eight", "eighteen", "eighteenth", "eighth", "eleven", "eleventh",
    "end", "eob", "eod", "eom", "eoq", "eow", "eoy", "evening", "eventually", "every", "everyday",
    "father", "fathers", "feb", "february", "few", "fifteen", "fifteenth", "fifth", "fifty", "final",
    "first", "five", "following", "for", "forty", "four", "fourteen", "fourteenth", "fourth", "fri",
    "friday", "gmt", "good", "half", "halloween", "in", "independence", "jan", "january", "jul",
    "july", "jun", "june", "last", "late", "later", "lunar", "many", "mar", "march", "maundy", "may",
    "memorial", "mid", "midday", "middle", "midnight", "mon", "monday", "mondays", "monthly",
    "morning", "mother", "mothers", "new", "next", "nine", "nineteen", "nineteenth", "ninth", "no",
    "noon", "nov", "november", "nxt", "oct", "october", "one", "over", "palm", "past", "previous",
    "quarter", "recently", "sat", "saturday", "second", "sep", "sept", "september", "seven",
    "seventeen", "seventeenth", "seventh", "several", "shortly", "six", "sixteen", "sixteenth",
    "sixth", "sixty", "some", "someday", "sometime", "soon", "spring", "st", "start", "sun", "sunday",
    "ten", "tenth", "thanksgiving", "the", "these", "third", "thirteen", "thirteenth", "thirtieth",
    "thirty", "this", "three", "thu", "thur", "thurs", "thursday", "tmr", "tmrw", "tmw", "today",
    "tommorow", "tommorrow", "tomorow", "tomorrow", "tonight", "tonite", "tue", "tues", "tuesday",
    "twelfth", "twelve", "twentieth", "twenty", "two", "upcoming", "utc", "valentine", "valentines",
    "veterans", "wed", "wednesday", "weds", "week", "weekend", "weekly", "weeks", "whit", "within",
    "xmas", "yearly", "yesterday",
];

/// The Chinese letters that a wording of time can begin with; any other is passed over at once.
pub(super) const OPENING_LETTERS: &str = "零一二两三四五六七八九十百千半廿卅几数若好多\
今明昨后前大翌听即下上本这周星礼年月农阴旧古夏正冬腊闰去来次民元当第每逢单双隔\
凌拂清早晨中午傍晚夜深子差尽近最过改回有抽稍待等到届择不节收放睡打闭\
接未往再还剩之提推延情妇植愚劳母儿父建教国感万光女平圣春端重小除季\
世护记复黑立雨惊谷芒处白秋寒霜寻现\
北东香台新日首韩伦英巴柏德莫悉纽美太洛格世协初";
